"""What a supervisor and its worker tell each other, in JSON lines: settings once down, reports up."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict


class WorkerSettings(BaseModel):
    """What to serve and where. `answers` is the folder of the response log, None for none; connections are asked to
    come again after `connection_seconds`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: Path
    host: str
    port: int
    connection_seconds: float
    answers: Path | None = None


class WorkerReport(BaseModel):
    """One of the two: `ready` is the version of the bundle that is served from now on; `refused` says why none is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    ready: str | None = None
    refused: str | None = None

    @property
    def line(self) -> str:
        """JSON, without an end of line."""
        return self.model_dump_json(exclude_none=True)
