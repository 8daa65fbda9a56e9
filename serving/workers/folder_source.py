"""A bundle's folder as a source of bundles: it names one version, the one that lay there at the start."""

from __future__ import annotations

from pathlib import Path

from contracts.bundle.bundle import read_manifest


class FolderSource:
    """Raises BundleError where the folder holds no bundle."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._version = folder, read_manifest(folder).version

    def latest(self) -> str:
        return self._version

    def fetch(self, version: str) -> Path:
        """The folder itself."""
        return self._folder
