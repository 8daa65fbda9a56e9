"""A source of bundles that does as it is told."""

from __future__ import annotations

import threading
from pathlib import Path


class Shelf:
    """A source that names `version`, or raises `error`; a fetch waits for `open`."""

    compares = False

    def __init__(self) -> None:
        self.version: str | None = "shop-1"
        self.error: Exception | None = None
        self.broken_store: Exception | None = None
        self.open = threading.Event()
        self.open.set()

    def latest(self) -> str | None:
        if self.error:
            raise self.error
        return self.version

    def fetch(self, version: str) -> Path:
        self.open.wait(20)
        if self.broken_store:
            raise self.broken_store
        return Path(version)
