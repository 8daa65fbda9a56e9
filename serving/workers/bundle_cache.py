"""Where a supervisor keeps the bundles that it serves, so that a start needs no registry.

    CACHE/serving.json     the version that was served last and its folder
    CACHE/NAME/VERSION     its files, as fetched
    CACHE/.server          locked by the supervisor as long as it lives; two would remove each other's bundles

Of bundles what neither is served nor was served before it is removed, as is what a killed supervisor left half-fetched,
both known by their names. Whatever else lies there is somebody else's.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from contracts.atomic_write import durable
from contracts.bundle.bundle import read_manifest
from contracts.errors import BundleError, ConfigError

FILE, LOCK = "serving.json", ".server"
BUNDLE = re.compile(r"\.?[A-Za-z0-9_-]+-[0-9a-f]{12}(\.[0-9a-f]{8})?")  # VERSION, or .VERSION.MARK half-fetched


class ServedBundle(BaseModel):
    """A version, and where its files lie. `compared`: just now with their checksums, which nobody remembers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: str
    folder: Path
    compared: bool = Field(default=False, exclude=True)


class BundleCache:
    """One process's, until it ends. Raises ConfigError where another one has the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)  # never closed: that would end the lock
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # which no worker inherits, as it would a flock
        except (BlockingIOError, PermissionError):
            raise ConfigError(f"{folder} keeps the bundles of another `sluice serve` that runs, and each would remove "
                              "the other's; give each a folder of its own with --cache") from None
        except OSError:  # a file system without locks
            pass

    def last_served(self) -> ServedBundle | None:
        """None where nothing was, or its folder is gone, lies elsewhere, or holds another bundle; whether its files are
        whole is seen by who loads it."""
        try:
            found = ServedBundle.model_validate_json((self.folder / FILE).read_text(encoding="utf-8"))
        except (OSError, ValidationError):
            return None
        if self.folder.resolve() not in found.folder.resolve().parents:
            return None
        try:
            return found if read_manifest(found.folder).version == found.version else None
        except BundleError:
            return None

    def remember(self, served: ServedBundle) -> None:
        with durable(self.folder / FILE) as draft:
            draft.write_text(served.model_dump_json(), encoding="utf-8")

    def clean(self, *keep: Path) -> None:
        """Removes every bundle but these, and what is half-fetched. A folder that cannot be read is passed over: a
        volume's own lost+found is."""
        kept = {path.resolve() for path in keep}
        for name in self.folder.iterdir():
            with contextlib.suppress(OSError):
                for found in name.iterdir() if name.is_dir() and not name.is_symlink() else ():
                    if BUNDLE.fullmatch(found.name) and found.resolve() not in kept:
                        shutil.rmtree(found, ignore_errors=True)


def default_folder(server: str, registry: str) -> Path:
    """Below the user's cache folder, by registry and by what tells a `server` from others of it."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    mark = hashlib.sha256(f"{registry}\n{server}".encode()).hexdigest()[:16]
    return root / "sluice" / "bundles" / mark
