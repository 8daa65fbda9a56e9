"""Lines of logs on standard error: for people, or each a JSON object where SLUICE_LOG_FORMAT=json.

    {"time": "2026-03-01T08:00:00.123Z", "level": "ERROR", "logger": "sluice.serving", "process": 7, "message": "...",
     "request_id": "...", "trace_id": "...", "error": "Traceback ..."}

`time` is UTC. Further names are what the line is about (`fields`). Where the environment has a W3C TRACEPARENT, as a
scheduler sets it for its tasks, its trace is that of every line which has none of its own.
"""

from __future__ import annotations

import json
import logging
import os
import re
from datetime import UTC, datetime
from typing import Any

from contracts.errors import ConfigError

FORMAT, TRACEPARENT = "SLUICE_LOG_FORMAT", "TRACEPARENT"
FOR_PEOPLE = "%(asctime)s %(levelname)s %(process)d %(message)s"
KINDS = ("text", "json")


class JsonLines(logging.Formatter):
    """A line a record, whatever it holds."""

    def __init__(self) -> None:
        super().__init__()
        trace = trace_id(os.environ.get(TRACEPARENT, ""))
        self._always = {"trace_id": trace} if trace else {}

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        made = {"time": time, "level": record.levelname, "logger": record.name, "process": record.process,
                "message": record.getMessage(), **self._always, **getattr(record, "fields", {})}
        if record.exc_info:
            made["error"] = self.formatException(record.exc_info)
        return json.dumps(made, default=str)


def fields(**told: object) -> dict[str, Any]:
    """For `log.error(..., extra=fields(request_id=...))`; what is empty is left out."""
    return {"fields": {name: value for name, value in told.items() if value != ""}}


def trace_id(traceparent: str) -> str:
    """32 hexadecimal digits (W3C Trace Context), "" where there is none."""
    found = re.fullmatch(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}.*", traceparent)
    return found[1] if found else ""


def are_json() -> bool:
    """Raises ConfigError for a format that is not known."""
    kind = os.environ.get(FORMAT) or KINDS[0]
    if kind not in KINDS:
        raise ConfigError(f"{FORMAT} is {kind!r}; it may be {' or '.join(KINDS)}")
    return kind == "json"


def log_to_stderr() -> None:
    """Our own lines from INFO on, those of libraries from WARNING on. Raises ConfigError."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if are_json() else logging.Formatter(FOR_PEOPLE))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("sluice").setLevel(logging.INFO)
