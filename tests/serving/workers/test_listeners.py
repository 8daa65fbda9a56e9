"""The numbers that Linux gives the listeners of a port, kept by who began and who ended."""

from __future__ import annotations

import socket
from select import select as readable
from typing import cast

from serving.server.port_takeover import reserved, select
from serving.workers.listeners import Listeners
from serving.workers.worker_process import WorkerProcess


class Worker:
    """A listener of this process, with what a supervisor knows of a worker. `told` whether it may listen."""

    def __init__(self, port: int) -> None:
        self._port, self.alive, self.ready, self.told = port, True, False, False
        self.socket = socket.socket()

    def listen(self) -> None:
        self.told = True

    def begin(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.socket.bind(("127.0.0.1", self._port))
        self.socket.listen(20)
        self.ready = True

    def end(self) -> None:
        self.socket.close()
        self.alive = False

    def is_called(self) -> bool:
        """Somebody connects: is it taken by this one?"""
        with socket.create_connection(("127.0.0.1", self._port), timeout=5):
            found = bool(readable([self.socket], [], [], 0.2)[0])
            if found:
                self.socket.accept()[0].close()
            return found


def listening(listeners: Listeners, workers: list[Worker]) -> None:
    for worker in workers:
        listeners.begin(cast(WorkerProcess, worker))
        worker.begin()
    listeners.update()


def selected(listeners: Listeners, port: int, worker: Worker) -> None:
    """Every connection is its: so the number is the kernel's, too."""
    select(port, listeners.numbers([cast(WorkerProcess, worker)]))
    assert worker.is_called()


def test_numbers_are_the_kernels_through_deaths_and_starts() -> None:
    with reserved("127.0.0.1", 0) as port:
        listeners, workers = Listeners(), [Worker(port) for _ in range(4)]
        listening(listeners, workers)
        for worker in workers:
            selected(listeners, port, worker)
        for gone, back in ((0, True), (3, True), (1, False), (2, True)):
            workers[gone].end()
            listeners.update()
            if back:
                workers[gone] = Worker(port)
                listening(listeners, [workers[gone]])
            for worker in workers:
                if worker.alive:
                    selected(listeners, port, worker)
        for worker in workers:
            worker.socket.close()


def test_one_begins_at_a_time() -> None:
    with reserved("127.0.0.1", 0) as port:
        listeners, workers = Listeners(), [Worker(port) for _ in range(2)]
        one, other = workers
        for worker in workers:
            listeners.begin(cast(WorkerProcess, worker))
        assert (one.told, other.told) == (True, False)
        one.end()
        listeners.begin(cast(WorkerProcess, other))
        assert other.told
        assert listeners.numbers(cast(list[WorkerProcess], workers)) == ()
        other.begin()
        listeners.update()
        assert listeners.numbers(cast(list[WorkerProcess], workers)) == (0,)
        other.end()


def test_whose_numbers_stay_when_another_ends() -> None:
    with reserved("127.0.0.1", 0) as port:
        listeners, workers = Listeners(), [Worker(port) for _ in range(3)]
        listening(listeners, workers)
        known = cast(list[WorkerProcess], workers)
        assert listeners.last_of(known[:2]) is known[1]
        assert list(listeners.unmoved(known[1:])) == [known[1]]
        assert list(listeners.unmoved(known[2:])) == [known[2]]
        assert listeners.last_of([]) is None
        for worker in workers:
            worker.end()
