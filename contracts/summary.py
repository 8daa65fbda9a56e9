"""`summary.json`: what one step did, in figures; gates, tests and the report read it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = "summary.json"


def write(folder: Path, summary: Mapping[str, Any]) -> None:
    """Replaces the folder's summary in one rename."""
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f".{FILE}.{os.getpid()}"
    aside.write_text(json.dumps(summary, indent=1, default=str, allow_nan=False) + "\n", encoding="utf-8")
    aside.replace(folder / FILE)


def read(folder: Path) -> dict[str, Any]:
    path = folder / FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
