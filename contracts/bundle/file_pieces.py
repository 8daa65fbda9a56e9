"""Files of a bundle, gigabytes perhaps, read and copied piece by piece, between which who serves beside goes first."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from contracts.behind_others import give_way

PIECE_BYTES = 1 << 18  # within a core's own cache


def pieces(path: Path) -> Iterator[memoryview]:
    """All bytes of a file; each piece is there until the next is asked for."""
    buffer = memoryview(bytearray(PIECE_BYTES))
    with path.open("rb", buffering=0) as file:
        while size := file.readinto(buffer):
            yield buffer[:size]
            give_way()


def copy_folder(source: Path, target: Path) -> None:
    """All that lies there. Raises OSError or shutil.Error where something cannot be read or the target exists."""
    shutil.copytree(source, target, copy_function=_copy)


def _copy(source: str, target: str) -> None:
    with open(target, "wb", buffering=0) as file:
        for piece in pieces(Path(source)):
            while piece:
                piece = piece[file.write(piece) :]
    shutil.copymode(source, target)
