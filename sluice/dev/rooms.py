"""The rooms of the house: `python -m sluice.dev.rooms` prints folders with files, lines and arrows in and out.

A room is a folder with source files; an arrow is an import of one room by another, wherever in a file it stands.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLOORS = ("contracts", "pipelines", "models", "federated", "serving", "sluice", "benchmarks", "airflow_dags")


@dataclass
class Room:
    """`looks_into` and `seen_from` name other rooms, as in `models.layers`."""

    files: int = 0
    lines: int = 0
    looks_into: set[str] = field(default_factory=set)
    seen_from: set[str] = field(default_factory=set)


def sources(root: Path, floor: str) -> list[Path]:
    """Source files of a floor, without those that protoc writes and empty package faces."""
    paths = sorted((root / floor).rglob("*.py"))
    return [path for path in paths if "_pb2" not in path.name and path.stem != "__init__"]


def room_of(root: Path, path: Path) -> str:
    """The folder's dotted name below the root, as in models.layers."""
    return ".".join(path.parent.relative_to(root).parts)


def imported_modules(source: str) -> Iterator[str]:
    """Every dotted name that the source imports, a name of a module behind the module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def rooms(root: Path = ROOT) -> dict[str, Room]:
    """Room by its dotted name."""
    files = [path for floor in FLOORS for path in sources(root, floor)]
    paths = {".".join(path.relative_to(root).with_suffix("").parts): path for path in files}
    found: dict[str, Room] = {}
    for path in paths.values():
        room = found.setdefault(room_of(root, path), Room())
        text = path.read_text(encoding="utf-8")
        room.files += 1
        room.lines += text.count("\n")
        targets = {room_of(root, paths[name]) for name in imported_modules(text) if name in paths}
        room.looks_into |= targets - {room_of(root, path)}
    for name, room in found.items():
        for target in room.looks_into:
            found[target].seen_from.add(name)
    return dict(sorted(found.items()))


def table(found: dict[str, Room]) -> str:
    """Markdown, a row a room."""
    rows = [
        f"| {name} | {room.files} | {room.lines} | {len(room.looks_into)} | {len(room.seen_from)} |"
        for name, room in found.items()
    ]
    return "\n".join(["| room | files | lines | looks into | seen from |", "|---|---|---|---|---|", *rows])


if __name__ == "__main__":
    print(table(rooms()))
