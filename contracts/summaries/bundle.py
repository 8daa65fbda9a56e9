"""What assembling, publishing and verifying a bundle found: in its manifest, and in OUT/bundle_job/summary.json."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from contracts.summaries.summary import Record, Summary


class ParityFigures(Record):
    """Rows recomputed by the server's code; `mismatches` of them differ in an id, or by more than the tolerance."""

    rows: int
    mismatches: int
    max_logit_difference: float


class IndexRecall(Record):
    """Share of an exact search's `k` best items that the index finds, mean and worst over `queries` users."""

    k: int
    queries: int
    mean: float
    worst: float


class ModelMetrics(Record):
    """One model on the test window; GAUC where the log has users."""

    auc: float | None = None
    gauc: float | None = None
    log_loss: float | None = None
    ece: float | None = None
    predicted_over_observed: float | None = None


class BundleMetrics(Record):
    """`ranker` names the served model among `models`; without items there are neither rows of tables nor an index.
    `channels`: histories whose best items the channels of `retrieve.channels` score as training did. `data_until`: when
    the last event was that the tables know, of a log with times."""

    ranker: str
    parity: ParityFigures
    users: int | None = None
    items: int | None = None
    index: IndexRecall | None = None
    channels: dict[str, ParityFigures] | None = None
    data_until: datetime | None = None
    models: dict[str, ModelMetrics] = Field(default_factory=dict)


class VerifiedBundle(Record):
    """What `sluice verify` prints; `files` were compared with their checksums."""

    version: str
    files: int
    parity: ParityFigures
    users: int | None = None
    items: int | None = None
    index: IndexRecall | None = None
    channels: dict[str, ParityFigures] | None = None


class BundleSummary(Summary):
    """OUT/bundle_job/summary.json. `bytes` of all files, `seconds` to assemble and publish; `grown`: PSI of the fields
    that grow with the log, as whoever asks next has them, against training's rows."""

    version: str
    files: int
    ranker: str
    parity: ParityFigures
    users: int | None = None
    items: int | None = None
    index: IndexRecall | None = None
    channels: dict[str, ParityFigures] | None = None
    grown: dict[str, float] | None = None
    bytes: int
    seconds: float
