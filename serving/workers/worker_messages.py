"""What a supervisor and its workers tell each other, in JSON lines: settings at the start, orders down, reports up."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict

from serving.access.doors import Doors


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def line(self) -> str:
        """JSON, without an end of line."""
        return self.model_dump_json(exclude_defaults=True)


class WorkerSettings(BaseModel):
    """What to serve and where. `answers` is the folder of the response log, None for none; connections are asked to
    come again after `connection_seconds`. `fresh` is the folder of what changes between bundles, `user_store` the
    address of a Redis, or a folder, with users of a later day, `event_stream` of one whose stream brings events;
    `balanced`: all calls come through the balancer. `beside`: others serve while it loads; `compared`: who
    fetched them, or a worker of the first that loaded, has just compared the folder's files with their checksums."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: Path
    host: str
    port: int
    connection_seconds: float
    answers: Path | None = None
    doors: Doors = Doors()
    fresh: Path | None = None
    user_store: str | None = None
    event_stream: str | None = None
    balanced: bool = False
    beside: bool = False
    compared: bool = False


class WorkerOrder(_Message):
    """One of three: `listen`, once it has loaded; `select`, the numbers of the listeners that get new connections, and
    `first` those of the next ones (see serving/server/port_takeover.py); `ping`, to be answered by the event loop."""

    listen: bool = False
    select: tuple[int, ...] | None = None
    first: tuple[int, ...] = ()
    ping: int = 0


class WorkerReport(_Message):
    """`loaded`: it waits for the order to listen; `ready` is the version that is served from now on, `deadline` the
    seconds that a call without one may take there; `refused` says why none is; `pong` answers a ping, `connections`
    tells how many callers are connected, `service` the mean seconds that ranking one request takes."""

    loaded: bool = False
    ready: str | None = None
    deadline: float = 0.0
    refused: str | None = None
    pong: int = 0
    connections: int = 0
    service: float = 0.0
