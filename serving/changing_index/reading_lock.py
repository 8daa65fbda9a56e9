"""Many read at once, or one writes.

Who reads does not wait for one who waits to write: a search takes ten times as long as what changes the lists that it
reads, and requests go before changes. So whoever writes counts on moments without a reader: a worker computes one
request at a time, and waits in between.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class ReadingLock:
    def __init__(self) -> None:
        self._unread, self._readers = threading.Condition(), 0

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._unread:
            self._readers += 1
        try:
            yield
        finally:
            with self._unread:
                self._readers -= 1
                self._unread.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Waits until nobody reads."""
        with self._unread:
            self._unread.wait_for(lambda: not self._readers)
            yield
