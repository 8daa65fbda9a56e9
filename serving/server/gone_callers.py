"""gRPC writes a traceback for every answer whose caller has gone while it was written, which anybody can do as often as
they like. Such a call is counted as any that was cancelled; it is no failure of the server."""

from __future__ import annotations

import logging

LOGGER, FAILED_WRITE = "grpc._cython.cygrpc", "ExecuteBatchError"


def _is_of_others(record: logging.LogRecord) -> bool:
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or kind.__name__ != FAILED_WRITE


def leave_out_gone_callers() -> None:
    """Of the lines of this process's log; done twice it is done once."""
    logging.getLogger(LOGGER).addFilter(_is_of_others)
