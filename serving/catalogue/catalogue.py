"""A worker's catalogue: what is served, kept fresh by a follower, and the writer through which changes come in."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

from contracts.thread_name import name_thread
from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue.change import Change
from serving.catalogue.change_store import FILE, ChangeStore
from serving.catalogue.follower import Follower
from serving.catalogue.fresh_bundle import FreshBundle

BATCH_SECONDS = 0.05  # that a batch waits at most for a lull of requests, to be read and to be written


class Catalogue:
    """Of the bundle `loaded` from `bundle_folder`, with the changes that `folder` holds; any worker may write there.
    All that is stored is shown when this is made; what comes later, once the follower is started. Raises DataError
    where the store cannot be opened."""

    def __init__(self, loaded: LoadedBundle, bundle_folder: Path, folder: Path) -> None:
        followed = ChangeStore(folder)
        self.fresh = FreshBundle(loaded, bundle_folder, followed.numbers_of)
        self.follower = Follower(self.fresh, followed)
        self._store, self._read, self.path = ChangeStore(folder), ChangeStore(folder), folder / FILE
        self.follower.catch_up()
        self.writing = ThreadPoolExecutor(1, "catalogue-write", name_thread)
        self.reading = ThreadPoolExecutor(1, "catalogue-read", name_thread)

    @property
    def bundle(self) -> LoadedBundle:
        """What to serve."""
        return self.fresh.bundle

    def record(self, changes: Sequence[Change]) -> tuple[list[bool], int]:
        """As ChangeStore does; in the thread of `writing`."""
        return self._store.record(changes)

    def stored(self) -> int:
        """The last sequence number of the store; in the thread of `reading`, which waits for no batch. Raises
        sqlite3.Error."""
        return self._read.last()

    @property
    def mark(self) -> str:
        """Of the store."""
        return self._read.mark

    def state(self) -> tuple[float, int]:
        """Since how many seconds changes may be stored and not shown, and how many items cannot be; for any thread."""
        return self.follower.lag, self.fresh.unshown.state.items

    def turn(self) -> AbstractContextManager[object]:
        """A moment without a request, where one comes soon."""
        return self.follower.lulls.turn(BATCH_SECONDS)

    def close(self) -> None:
        self.writing.shutdown()
        self.reading.shutdown()
        self.follower.close()
        self._store.close()
        self._read.close()
