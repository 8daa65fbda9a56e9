"""What a server makes of hostile calls: the status of each, the memory and the time that it took."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import grpc

from benchmarks.hostile.messages import Sent

ALLOWED = {  # as docs/reference/errors.md says
    "drawn": {"OK", "INVALID_ARGUMENT"}, "spoilt": {"OK", "INVALID_ARGUMENT"}, "random": {"OK", "INVALID_ARGUMENT"},
    "flooded": {"OK", "INVALID_ARGUMENT"}, "too large": {"RESOURCE_EXHAUSTED"}}
NOT_KEPT = "FAILED_PRECONDITION"  # of events, where the bundle's log cannot be recorded
MEGABYTES, MILLISECONDS = 50.0, 100.0  # that one call may take
SECONDS = 5.0


@dataclass(frozen=True)
class Outcome:
    """`cpu_ms` of all of the server's threads; `megabytes`: by how much its memory rose at most meanwhile."""

    sent: Sent
    status: str
    milliseconds: float
    cpu_ms: float
    megabytes: float
    metadata_bytes: int

    @property
    def documented(self) -> bool:
        fits = self.sent.kind != "too large" and self.sent.method.startswith("Events/")
        return self.status in ALLOWED[self.sent.kind] or (fits and self.status == NOT_KEPT)


def worked(pid: int) -> float:
    """Milliseconds of processor time since the beginning, of the process's threads that are there."""
    found = ((task / "schedstat").read_text() for task in Path(f"/proc/{pid}/task").iterdir())
    return sum(int(text.split()[0]) for text in found) / 1e6


class Target:
    """One server process and a channel to it."""

    def __init__(self, pid: int, channel: grpc.Channel) -> None:
        self._pid, self._proc, self._channel = pid, Path(f"/proc/{pid}"), channel

    def ask(self, sent: Sent) -> Outcome:
        """The call, waited for."""
        before = self._kilobytes("VmRSS")
        (self._proc / "clear_refs").write_text("5")  # the peak begins anew
        status, metadata, done, began = "OK", 0, worked(self._pid), time.perf_counter()
        try:
            self._channel.unary_unary(f"/sluice.v1.{sent.method}")(sent.content, timeout=SECONDS)
        except grpc.RpcError as error:
            status = error.code().name
            trailing = error.trailing_metadata() or ()
            metadata = sum(len(key) + len(value) for key, value in trailing) + len(error.details() or "")
        spent, rise = time.perf_counter() - began, self._kilobytes("VmHWM") - before
        return Outcome(sent, status, 1000 * spent, worked(self._pid) - done, rise / 1024, metadata)

    def _kilobytes(self, name: str) -> int:
        lines = (self._proc / "status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
