"""One client's memory of what it sent under FedLaAvg (federated/averaging/fedlaavg.py), in a file of its own.

    FOLDER/NAME.safetensors    the committed gradient, the pending one, the rounds they were sent in (-1: none), whether
                               the pending one was opened and with whose, and the run that they are of

It is on the disk before an upload leaves the client: a crash never makes it forget what the server may have. In another
run it begins with nothing; the run's name is bound into all masks of a round, so all its clients begin anew or none.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np

from contracts.atomic_write import durable
from contracts.bundle.bundle import load_weights, save_weights
from federated.averaging.fedlaavg import Gradient, GradientMemory
from federated.protocol.local_update import LocalUpdate
from federated.protocol.messages import RUN_BYTES
from federated.protocol.plan import Plan
from federated.secure_aggregation.roster_consistency import quorum

NO_RUN = bytes(RUN_BYTES // 2)  # of a run without masks: nothing is bound to it
NOBODY: np.ndarray = np.empty(0, dtype=np.int64)


class GradientStore:
    """Read anew each time: the next process of the client may be another one."""

    def __init__(self, path: Path, dense: int, width: int) -> None:
        self.path, self.dense, self.width = path, dense, width

    def places(self, run: bytes) -> np.ndarray:
        """Rows that what was sent lies on, whether the server has it or not."""
        memory = self.read(run)
        return memory.declared(memory.pending[1].places if memory.pending else np.empty(0, dtype=np.int64))

    def difference(
        self, plan: Plan, number: int, accepted: int, places: np.ndarray, succinct: np.ndarray, update: LocalUpdate,
        run: bytes = NO_RUN, voided: Collection[int] = (), roster: Collection[int] = (),
    ) -> LocalUpdate:
        """`update` on the succinct of the declared places -> what to send instead of it, which is remembered. `voided`:
        rounds that all of this `roster` are told were never finished."""
        memory = self.read(run)
        memory.settle(accepted, self._voided(memory, voided, roster))
        gradient = Gradient(-update.dense.astype(np.float64), places[succinct], -update.rows.astype(np.float64))

        def as_sent(exact: Gradient) -> Gradient:
            return Gradient(*(
                plan.fixed.decode(plan.fixed.encode(part)) if part.dtype != np.int64 else part
                for part in (exact.dense, exact.places, exact.rows)
            ))

        sent = memory.difference(number, gradient, places[succinct], as_sent)
        self._write(memory, run)
        return replace(update, rows=sent.rows, dense=sent.dense)

    def note_opened(self, number: int, run: bytes, finished: Collection[int]) -> None:
        """That this client reveals what opens the sum of a round, which has these clients' uploads and its own."""
        memory = self.read(run)
        if memory.pending is not None and memory.pending[0] == number:
            memory.opened = True
            self._write(memory, run, np.array(sorted(finished), dtype=np.int64))

    def _voided(self, memory: GradientMemory, voided: Collection[int], roster: Collection[int]) -> bool:
        """Whether so many of the clients of the opened sum are in this roster that none of them is singled out."""
        if memory.pending is None or memory.pending[0] not in voided or not memory.opened:
            return False
        finished = set(np.array(load_weights(self.path)["finished"]).tolist())
        return len(finished & set(roster)) >= quorum(len(finished))

    def committed(self, run: bytes = NO_RUN) -> Gradient:
        """What the server is known to have of this client."""
        return self.read(run).committed

    def read(self, run: bytes = NO_RUN) -> GradientMemory:
        """As it lies in the file; empty where there is none, or one of another run."""
        if not self.path.exists():
            return GradientMemory.empty(self.dense, self.width)
        arrays = {name: np.array(array) for name, array in load_weights(self.path).items()}
        if arrays["run"].tobytes() != run:
            return GradientMemory.empty(self.dense, self.width)
        committed, pending = (
            Gradient(arrays[f"{which}_dense"], arrays[f"{which}_places"], arrays[f"{which}_rows"])
            for which in ("committed", "pending")
        )
        since, number, opened = (int(value) for value in arrays["rounds"])
        return GradientMemory(committed, None if number < 0 else (number, pending), since, bool(opened))

    def _write(self, memory: GradientMemory, run: bytes, finished: np.ndarray = NOBODY) -> None:
        number, pending = memory.pending or (-1, memory.committed)
        arrays: dict[str, np.ndarray] = {
            "rounds": np.array([memory.number, number, memory.opened], dtype=np.int64),
            "run": np.frombuffer(run, dtype=np.uint8), "finished": finished}
        for which, gradient in (("committed", memory.committed), ("pending", pending)):
            arrays |= {f"{which}_dense": gradient.dense, f"{which}_places": gradient.places,
                       f"{which}_rows": gradient.rows}
        with durable(self.path) as draft:
            save_weights(draft, arrays)
