"""What a server makes of hostile calls: the status of each, the memory and the time that it took.

Processor time is told apart by thread. What a call costs is the work of all threads while it runs but for those of
BACKGROUND, and where it changes items the work of the thread that shows the changes, until they are shown. The rest of
the background (measuring the recall of searches, landing events) no single call has caused; it stands beside.
The caller collects no garbage while it waits: its own pauses, of up to 0.3 s, would look like the server's.
"""

from __future__ import annotations

import gc
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from benchmarks.hostile.messages import Sent
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc

ALLOWED = {  # as docs/reference/errors.md says
    "drawn": {"OK", "INVALID_ARGUMENT"}, "spoilt": {"OK", "INVALID_ARGUMENT"}, "random": {"OK", "INVALID_ARGUMENT"},
    "flooded": {"OK", "INVALID_ARGUMENT"}, "nested": {"OK", "INVALID_ARGUMENT"},
    "too large": {"RESOURCE_EXHAUSTED"}}
NOT_KEPT = "FAILED_PRECONDITION"  # of events, where the bundle's log cannot be recorded
MEGABYTES, MILLISECONDS = 50.0, 100.0  # that one call may take
SECONDS = 5.0
SHOWS = "catalogue"  # the thread that shows changes of items
BACKGROUND = frozenset({SHOWS, "recall-measure", "landing", "answer-log"})
SHOWN_WITHIN = 30.0  # seconds
Threads = Mapping[int, tuple[str, float]]


@dataclass(frozen=True)
class Outcome:
    """`cpu_ms` is what the call has cost; `beside_ms` by thread what went on beside it; `megabytes`: by how much the
    server's memory rose at most meanwhile."""

    sent: Sent
    status: str
    milliseconds: float
    cpu_ms: float
    megabytes: float
    metadata_bytes: int
    beside_ms: Mapping[str, float] = field(default_factory=dict)

    @property
    def documented(self) -> bool:
        fits = self.sent.kind != "too large" and self.sent.method.startswith("Events/")
        return self.status in ALLOWED[self.sent.kind] or (fits and self.status == NOT_KEPT)


def threads(pid: int) -> Threads:
    """Name and milliseconds of processor time since the beginning, of the process's threads that are there."""
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        spent = int((task / "schedstat").read_text().split()[0])
        found[int(task.name)] = (task / "comm").read_text().strip(), spent / 1e6
    return found


def worked(pid: int) -> float:
    """Milliseconds of processor time of all of them."""
    return sum(spent for _, spent in threads(pid).values())


def spent_by_name(before: Threads, after: Threads) -> defaultdict[str, float]:
    """Milliseconds of processor time between the two, by the threads' names."""
    found: defaultdict[str, float] = defaultdict(float)
    for number, (name, spent) in after.items():
        found[name] += spent - before.get(number, ("", 0.0))[1]
    return found


@contextmanager
def uncollected() -> Iterator[None]:
    """Without a collection of garbage in this process."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Target:
    """One server process and a channel to it."""

    def __init__(self, pid: int, channel: grpc.Channel) -> None:
        self._pid, self._proc, self._channel = pid, Path(f"/proc/{pid}"), channel

    def ask(self, sent: Sent) -> Outcome:
        """The call, waited for."""
        memory = self._kilobytes("VmRSS")
        (self._proc / "clear_refs").write_text("5")  # the peak begins anew
        status, metadata, before, began = "OK", 0, threads(self._pid), time.perf_counter()
        try:
            with uncollected():
                self._channel.unary_unary(f"/sluice.v1.{sent.method}")(sent.content, timeout=SECONDS)
        except grpc.RpcError as error:
            status = error.code().name
            trailing = error.trailing_metadata() or ()
            metadata = sum(len(key) + len(value) for key, value in trailing) + len(error.details() or "")
        waited, spent = 1000 * (time.perf_counter() - began), spent_by_name(before, threads(self._pid))
        cost = sum(spent[name] for name in spent if name not in BACKGROUND)
        if sent.method.startswith("Catalog/") and status == "OK":
            self._until_shown()
            cost += spent_by_name(before, threads(self._pid))[SHOWS]
            spent.pop(SHOWS, None)
        rise = self._kilobytes("VmHWM") - memory
        beside = {name: spent[name] for name in spent if name in BACKGROUND}
        return Outcome(sent, status, waited, cost, rise / 1024, metadata, beside)

    def _until_shown(self) -> None:
        catalog, end = sluice_pb2_grpc.CatalogStub(self._channel), time.monotonic() + SHOWN_WITHIN
        while True:
            status = catalog.Status(pb.CatalogStatusRequest(), timeout=SECONDS)
            if status.applied_sequence >= status.stored_sequence:
                return
            if time.monotonic() > end:
                raise TimeoutError(f"changes are not shown within {SHOWN_WITHIN:.0f} s: {status.failure}")
            time.sleep(0.01)

    def _kilobytes(self, name: str) -> int:
        lines = (self._proc / "status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
