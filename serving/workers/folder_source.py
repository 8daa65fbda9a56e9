"""A bundle's folder as a source of bundles: it names the version that lies there now, put there by a delta that was
applied, published over it, or behind a link that was moved.

What is served are copies of the server's own, so that a generation keeps its files when the folder gets others, for
workers that are begun anew and for the way back. Hard links where the file system has them: no byte is copied.
"""

from __future__ import annotations

import logging
import os
import shutil
import uuid
from pathlib import Path

from contracts.atomic_write import put_in_place
from contracts.bundle.bundle import MANIFEST, read_manifest, verify
from contracts.errors import BundleError, ChecksumError, ReplacedError

log = logging.getLogger("sluice.serving")


class FolderSource:
    """`copies` holds a folder for each version that is fetched; None: the folder itself is served, for good. Raises
    BundleError where the folder holds no bundle."""

    compares = False  # what is linked is as whole as the folder was

    def __init__(self, folder: Path, copies: Path | None = None) -> None:
        self._folder, self._copies = folder, copies
        self._version, self._said, self._fetched = read_manifest(folder).version, "", False

    def latest(self) -> str | None:
        """None, and a line of the log, where nothing can be read there now: what is served is served on."""
        if self._copies is None:
            return self._version
        try:
            self._version, self._said = read_manifest(self._folder).version, ""
        except BundleError as error:
            if str(error) != self._said:
                self._said = str(error)
                log.error("what is served is served on: %s", error)
            return None
        return self._version

    def fetch(self, version: str) -> Path:
        """The folder to serve, unverified: before they listen the first of its workers compare checksums, and all of
        them parity. Where the first cannot be copied (a full disk), the folder itself is served, for good. Raises
        ReplacedError where another bundle lies there by now, BundleError where it is not whole, OSError where a later
        one cannot be copied."""
        if self._copies is None:
            return self._folder
        place, staging = self._copies / "bundle" / version, self._copies.with_name(f".{uuid.uuid4().hex[:8]}")
        if _is_whole(place):  # workers may be loading it
            return place
        try:
            staging.mkdir()
            _linked(self._folder, staging)
            found = read_manifest(staging).version
            if found != version:
                raise ReplacedError(f"{self._folder} holds {found} by now")
            place.parent.mkdir(exist_ok=True)
            put_in_place(staging, place)
        except OSError as error:
            if self._fetched:
                raise
            log.warning("no copy of %s can be made (%s): another bundle that is put there is served at the next start "
                        "only", self._folder, error.strerror)
            self._copies = None
            return self._folder
        finally:
            shutil.rmtree(staging, ignore_errors=True)
        self._fetched = True
        return place


def _is_whole(place: Path) -> bool:
    try:
        verify(place)
    except (BundleError, OSError):
        return False
    return True


def _linked(folder: Path, target: Path) -> None:
    """The files of the manifest that lies there now, of one bundle even where another takes the folder's name
    meanwhile. Raises BundleError where one is missing, ReplacedError where it went with the bundle."""
    try:
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        raise ReplacedError(f"{folder} is gone by now") from None
    try:
        _link_files(Path(f"/proc/self/fd/{place}"), target)  # of the folder itself, whatever its name
    except BundleError as error:
        if not _is_called(place, folder):
            raise ReplacedError(f"{folder} got another bundle while it was copied") from None
        raise type(error)(f"{folder}: {error}") from None
    finally:
        os.close(place)


def _is_called(place: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(place), folder.stat())
    except OSError:
        return False


def _link_files(folder: Path, target: Path) -> None:
    for path in [MANIFEST, *read_manifest(folder).files]:
        if ".." in Path(path).parts or Path(path).is_absolute():
            raise BundleError(f"its manifest names {path[:80]!r}, which is not in it; publish it again")
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        try:
            _link(folder / path, target / path)
        except FileNotFoundError:
            raise ChecksumError(f"{path} is missing; publish or copy the bundle again") from None


def _link(source: Path, target: Path) -> None:
    """Copies where the file system, or its owner, lets nobody link."""
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(source, target)
