"""Files of a bundle, gigabytes perhaps, read and copied piece by piece, between which who serves beside goes first."""

from __future__ import annotations

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
    """Its folders and files, which whoever copies may change and remove whatever their modes are there. Raises OSError
    where something cannot be read, is neither file nor folder, or the target exists."""
    target.mkdir()
    for path in sorted(source.iterdir()):
        if path.is_dir():
            copy_folder(path, target / path.name)
        elif path.is_file():
            _copy(path, target / path.name)
        else:
            raise OSError(f"{path} is neither a file nor a folder")


def _copy(source: Path, target: Path) -> None:
    with target.open("xb", buffering=0) as file:
        for piece in pieces(source):
            while piece:
                piece = piece[file.write(piece) :]
