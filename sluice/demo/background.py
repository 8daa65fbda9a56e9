"""Work that goes on in a thread of its own while something else is done, and whose breaking down is not overlooked."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from contracts.errors import SluiceError


class Background(ABC):
    """`with` one of it: `work` runs, until it is done or asks `stop` and is told to end; the block's end waits for it.

    Raises SluiceError at the end of the block when the work broke down and the block itself did not.
    """

    def __init__(self) -> None:
        self.stop = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=type(self).__name__)

    @abstractmethod
    def work(self) -> None:
        """Ends soon after `stop` is set."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop.set()
        self._thread.join()
        if self._failure is not None and error is None:
            raise SluiceError(f"{type(self).__name__} broke down: {self._failure!r}") from self._failure

    def _run(self) -> None:
        try:
            self.work()
        except Exception as error:
            self._failure = error
