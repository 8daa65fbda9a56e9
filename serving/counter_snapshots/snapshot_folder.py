"""Where snapshots of the items' counters lie: FOLDER/counters/NUMBER.npz, by the last event that they have counted.

One is there whole or not at all, through a loss of power too. The one before is kept until the next, should the last be
damaged. One process of the host writes at a time.
"""

from __future__ import annotations

from pathlib import Path

from contracts.atomic_write import durable
from serving.counter_snapshots.snapshot_file import write
from serving.item_counters.counter_standing import HeldCounters

NAME = "counters"
KEPT = 2


class SnapshotFolder:
    """Within the folder of `--fresh`; made by who writes."""

    def __init__(self, fresh: Path) -> None:
        self.path = fresh / NAME

    def newest_first(self) -> list[Path]:
        """As they were written, whatever their numbers: a log that begins anew has smaller ones."""
        return sorted(self.path.glob("[0-9]*.npz"), key=_written, reverse=True)

    def keep(self, held: HeldCounters) -> Path:
        """On disk when this returns; older ones are removed. Raises OSError."""
        path = self.path / f"{held.standing.seen:020d}.npz"
        with durable(path) as draft:
            write(held, draft)
        for old in self.newest_first()[KEPT:]:
            old.unlink(missing_ok=True)
        return path

    def remove_drafts(self) -> None:
        """Of a process that was killed while it wrote; for who writes. Raises OSError."""
        for draft in self.path.glob(".*.npz.*"):
            draft.unlink(missing_ok=True)


def _written(path: Path) -> int:
    """0 of one that another process has just removed."""
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0
