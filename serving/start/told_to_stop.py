"""What a signal's handler tells the thread that it interrupts: to stop.

Python runs a handler between two instructions of the main thread. A `threading.Event` takes a lock that is not
re-entrant, so that one whose thread waits for it, and has the lock just then, never gets out of its handler. `put` of
a `queue.SimpleQueue` is documented to be re-entrant, for just that.
"""

from __future__ import annotations

from queue import Empty, SimpleQueue


class ToldToStop:
    """As an Event, of which handlers of signals may call `set` at any moment."""

    def __init__(self) -> None:
        self._told = SimpleQueue[None]()

    def set(self) -> None:
        """From now on."""
        self._told.put(None)

    def wait(self, seconds: float) -> bool:
        """Whether it was told, by the end of so long a time."""
        try:
            self._told.get(timeout=seconds)
        except Empty:
            return False
        self._told.put(None)
        return True
