"""Looks for another bundle than the one that is served, in a thread of its own: a registry or a store that is slow, or
down, or raises whatever it likes, delays a change of bundles and nothing else."""

from __future__ import annotations

import logging
import threading
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Protocol

from contracts.behind_others import step_back, what_others_leave
from contracts.shown import without_passwords
from serving.workers.bundle_cache import ServedBundle

RETRY_SECONDS = 300.0
GIVING_WAY = 120.0  # seconds of fetching beside workers that serve
log = logging.getLogger("sluice.serving")


class BundleSource(Protocol):
    """`latest` names the bundle that should be served; `fetch` returns its folder, or raises. A source that `compares`
    has compared the files of that with their checksums."""

    compares: bool

    def latest(self) -> str | None: ...
    def fetch(self, version: str) -> Path: ...


class BundleSearch:
    """`begin` starts a search where none is under way; `take` hands over what one has found, once. `error` is what the
    last one ended with, None where it went well."""

    def __init__(self, source: BundleSource) -> None:
        self._source = source
        self._thread: threading.Thread | None = None
        self._found: ServedBundle | None = None
        self._refused: dict[str, float] = {}
        self.error: Exception | None = None

    @property
    def under_way(self) -> bool:
        """It may be fetching."""
        return self._thread is not None and self._thread.is_alive()

    def begin(self, served: str = "", coming: str = "") -> None:
        """Looks for another version than `served` and `coming`. What was found and not taken is let go where the source
        names it no longer. Raises RuntimeError where the system gives no thread."""
        if not self.under_way:
            thread = threading.Thread(target=self._look, args=(served, coming), name="bundle-search", daemon=True)
            thread.start()
            self._thread = thread

    def take(self) -> ServedBundle | None:
        found, self._found = self._found, None
        return None if found is None or self.is_refused(found.version) else found

    def refuse(self, version: str) -> None:
        """Not to be found again for a while."""
        self._refused[version] = time.monotonic() + RETRY_SECONDS

    def is_refused(self, version: str) -> bool:
        """For now."""
        return time.monotonic() < self._refused.get(version, 0.0)

    def _look(self, served: str, coming: str) -> None:
        """Of low priority: fetching a bundle takes about a second of a core, which those that serve need. Beside them
        it takes what they leave; with both cores full that was seen to hold up the loop no longer than else."""
        step_back()
        version, error = None, None
        try:
            version = self._source.latest()
            found = self._found  # who takes it meanwhile, leaves None
            if version is None or version in (served, coming) or self.is_refused(version):
                self._found = None
            elif found is None or found.version != version:
                self._found = None
                with what_others_leave(GIVING_WAY) if served else nullcontext():
                    folder = self._source.fetch(version)
                self._found = ServedBundle(version=version, folder=folder, compared=self._source.compares)
        except Exception as raised:
            error = raised
            if not served:  # nothing is served yet: who begins decides what it means
                pass
            elif version is None:
                log.warning("the registry cannot be asked: %s", sentence(error))
            else:
                log.error("refused %s, %s is served on: %s", version, served, sentence(error))
                self.refuse(version)
        self.error = error


def sentence(error: Exception) -> str:
    """The first line of what it says, without passwords; its name where it says nothing."""
    return without_passwords(next(iter(str(error).splitlines()), "")) or type(error).__name__
