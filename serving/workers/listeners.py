"""Which number each worker has among the listeners of the shared port, through starts, deaths and ends.

Linux numbers the listeners of a port in the order in which they began to listen; where one ends, the last takes its
number. So one begins at a time. Of several that die within the same moment the order is not known, and guessed: a wrong
guess sends connections to workers that are about to be left, which answer them and ask them to come again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from serving.workers.worker_process import WorkerProcess


class Listeners:
    """Of one port."""

    def __init__(self) -> None:
        self._order: list[WorkerProcess] = []
        self._beginning: WorkerProcess | None = None

    def begin(self, worker: WorkerProcess) -> None:
        """Lets a worker that has loaded listen, unless another one is about to: then it is to be asked for again."""
        self.update()
        if self._beginning is None and worker.alive:
            self._beginning = worker
            worker.listen()

    def update(self) -> None:
        """Takes in who has begun and who has ended."""
        one = self._beginning
        if one is not None and one.alive and one.ready:
            self._order.append(one)
        if one is not None and (one.ready or not one.alive):
            self._beginning = None
        for gone in [worker for worker in self._order if not worker.alive]:
            place, last = self._order.index(gone), self._order.pop()
            if last is not gone:
                self._order[place] = last

    def numbers(self, workers: Iterable[WorkerProcess]) -> tuple[int, ...]:
        """Of those of the workers that listen."""
        return tuple(self._order.index(worker) for worker in workers if worker in self._order)

    def last_of(self, workers: Collection[WorkerProcess]) -> WorkerProcess | None:
        """The one with the highest number, None where none of them listens."""
        return next((worker for worker in reversed(self._order) if worker in workers), None)

    def unmoved(self, workers: Sequence[WorkerProcess]) -> Sequence[WorkerProcess]:
        """Those whose numbers will not change when one of the others ends; all, where that would be none."""
        return [worker for worker in workers if worker not in self._order[-1:]] or workers
