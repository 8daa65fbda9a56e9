"""What work reports of how far it is (contracts/progress.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from contracts.progress import heard_by

Said = list[tuple[str, int, int]]


@contextmanager
def heard() -> Iterator[Said]:
    """All that is reported in the block, one after the other."""
    said: Said = []
    with heard_by(lambda *progress: said.append(progress)):
        yield said


def counts(said: Said, what: str) -> list[tuple[int, int]]:
    """(done, total) of one piece of work."""
    return [(done, total) for name, done, total in said if name == what]


def names(said: Said) -> Sequence[str]:
    """Of the pieces of work, each once, in the order in which they began."""
    return list(dict.fromkeys(name for name, _, _ in said))
