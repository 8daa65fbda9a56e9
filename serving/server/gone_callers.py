"""gRPC writes a traceback for every answer whose caller has gone while it was written, and for metadata that are not
UTF-8 one with the whole value, be it a token; anybody can do both as often as they like. Neither is a failure of the
server: a call whose caller has gone is counted as any that was cancelled, and one with such metadata is answered."""

from __future__ import annotations

import logging

LOGGER, FAILED_WRITE, NO_TEXT = "grpc._cython.cygrpc", "ExecuteBatchError", "Invalid encoding"


def _is_of_others(record: logging.LogRecord) -> bool:
    kind = record.exc_info[0] if record.exc_info else None
    return (kind is None or kind.__name__ != FAILED_WRITE) and not str(record.msg).startswith(NO_TEXT)


def leave_out_gone_callers() -> None:
    """Of the lines of this process's log; done twice it is done once."""
    logging.getLogger(LOGGER).addFilter(_is_of_others)
