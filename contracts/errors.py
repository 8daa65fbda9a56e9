"""Every error that Sluice raises on purpose.

    SluiceError                  exit 1
    ├── ConfigError              exit 2   the configuration or the command line is wrong
    ├── DataError                exit 1   the data do not fit the configuration
    │   ├── SchemaError                   a column is missing or has the wrong type
    │   ├── EmptyLogError                 nothing is left to work on
    │   ├── QuarantineError               too many malformed rows
    │   ├── NothingToCrossError           no two columns say more together than one of them
    │   ├── OneClassError                 labels of one class, or users too few to learn from
    │   └── WindowError                   a time window is empty or overlaps another
    ├── BundleError              exit 1   a bundle cannot be published or served
    │   ├── ChecksumError                 a file differs from its checksum
    │   ├── BundleVersionError            written by a newer Sluice
    │   ├── ReplacedError                 another one lies there than a moment ago
    │   └── ParityError                   the server computes other ids or scores than training did
    ├── RequestError             exit 1   a ranking request cannot be answered as asked
    ├── FederatedError           exit 1   federated training cannot go on
    │   ├── ProtocolError                 a client or the server refuses a message of the other
    │   └── RoundAbandoned                too few clients were left; the round changed nothing
    ├── GateRefused              exit 3   a quality gate said no
    └── RollBackWanted           exit 4   the watch found what is served wanting

A message names what was found, where, the limit, and the cure, in one or two sentences.
"""

from __future__ import annotations


class SluiceError(Exception):
    exit_code = 1


class ConfigError(SluiceError):
    exit_code = 2


class DataError(SluiceError):
    pass


class SchemaError(DataError):
    pass


class EmptyLogError(DataError):
    pass


class QuarantineError(DataError):
    pass


class NothingToCrossError(DataError):
    pass


class OneClassError(DataError):
    pass


class WindowError(DataError):
    pass


class BundleError(SluiceError):
    pass


class ChecksumError(BundleError):
    pass


class BundleVersionError(BundleError):
    pass


class ReplacedError(BundleError):
    pass


class ParityError(BundleError):
    pass


class RequestError(SluiceError):
    """`field` is the path of the offending request field, as the server reports it, `problem` what is wrong with it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field, self.problem = field, message


class FederatedError(SluiceError):
    pass


class ProtocolError(FederatedError):
    pass


class RoundAbandoned(FederatedError):
    """`accused`: clients whose secrets did not open although enough neighbours revealed shares of them; `suspects`:
    those in a sum that none of honest uploads can be."""

    def __init__(self, message: str, accused: tuple[int, ...] = (), suspects: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.accused, self.suspects = accused, suspects


class GateRefused(SluiceError):
    exit_code = 3


class RollBackWanted(SluiceError):
    exit_code = 4
