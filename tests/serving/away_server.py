"""The address of a server that is away: whoever connects is turned away, and counted."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType

TRIES = 6  # with the pauses of gRPC's own sixteen seconds apart, first to last
SECONDS = 10.0


class AwayServer:
    """`with away: away.sought(ask)`; from the block's end on another may listen on its port."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port, self.tries = int(self._socket.getsockname()[1]), 0
        self.target = f"127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._turn_away, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(20)
        self._socket.close()

    def sought(self, ask: Callable[[], object]) -> bool:
        """Whether who asks again and again comes here TRIES times within SECONDS."""
        def came() -> bool:
            ask()
            return self.tries >= TRIES

        return within_seconds(came)

    def _turn_away(self) -> None:
        while True:
            try:
                self._socket.accept()[0].close()
            except OSError:
                return
            self.tries += 1


def within_seconds(holds: Callable[[], bool]) -> bool:
    """Whether it does, once in SECONDS."""
    end = time.monotonic() + SECONDS
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True
