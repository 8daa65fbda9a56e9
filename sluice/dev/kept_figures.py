"""Figures of a long benchmark, one JSON line each as they are made, so that a run that was killed goes on.

A line counts only with the same digest: of the settings, of the data, and of the code that makes figures.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

CODE = ("models", "contracts")


class KeptFigures:
    """`kept(key, make)` returns what is on file for the key, or makes it and writes it down."""

    def __init__(self, path: Path, *parts: Any) -> None:
        self.path = path
        self.digest = hashlib.sha256(json.dumps([_code(), *parts], sort_keys=True).encode()).hexdigest()
        self._known: dict[str, Any] = {}
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            self._read(line)

    def __call__(self, key: str, make: Callable[[], Any]) -> Any:
        if key not in self._known:
            self._known[key] = make()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            line = json.dumps({"digest": self.digest, "key": key, "figures": self._known[key]})
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"\n{line}")  # a line that a kill has cut ends here
        return self._known[key]

    def _read(self, line: str) -> None:
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:  # empty, or cut by a kill: made again
            return
        if entry["digest"] == self.digest:
            self._known[entry["key"]] = entry["figures"]


def _code() -> str:
    """Of the source of the layers that make figures."""
    root, found = Path(__file__).parents[2], hashlib.sha256()
    for layer in CODE:
        for path in sorted((root / layer).rglob("*.py")):
            found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()
