"""One client's memory of what it sent under FedLaAvg (federated/averaging/fedlaavg.py), in a file of its own.

    FOLDER/NAME.safetensors    the committed gradient, the pending one, and the rounds they were sent in (-1: none)

It is replaced by rename before an upload leaves the client: a crash never makes it forget what the server may have.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from contracts.atomic_write import aside
from contracts.bundle.bundle import load_weights, save_weights
from federated.averaging.fedlaavg import Gradient, GradientMemory
from federated.protocol.local_update import LocalUpdate
from federated.protocol.plan import Plan


class GradientStore:
    """Read anew each time: the next process of the client may be another one."""

    def __init__(self, path: Path, dense: int, width: int) -> None:
        self.path, self.dense, self.width = path, dense, width

    def places(self) -> np.ndarray:
        """Rows that what was sent lies on, whether the server has it or not."""
        memory = self.read()
        return memory.declared(memory.pending[1].places if memory.pending else np.empty(0, dtype=np.int64))

    def difference(
        self, plan: Plan, number: int, accepted: int, places: np.ndarray, succinct: np.ndarray, update: LocalUpdate
    ) -> LocalUpdate:
        """`update` on the succinct of the declared places -> what to send instead of it, which is remembered."""
        memory = self.read()
        memory.settle(accepted)
        gradient = Gradient(-update.dense.astype(np.float64), places[succinct], -update.rows.astype(np.float64))

        def as_sent(exact: Gradient) -> Gradient:
            return Gradient(*(
                plan.fixed.decode(plan.fixed.encode(part)) if part.dtype != np.int64 else part
                for part in (exact.dense, exact.places, exact.rows)
            ))

        sent = memory.difference(number, gradient, places[succinct], as_sent)
        self._write(memory)
        return replace(update, rows=sent.rows, dense=sent.dense)

    def committed(self) -> Gradient:
        """What the server is known to have of this client."""
        return self.read().committed

    def read(self) -> GradientMemory:
        """As it lies in the file; empty where there is none."""
        if not self.path.exists():
            return GradientMemory.empty(self.dense, self.width)
        arrays = {name: np.array(array) for name, array in load_weights(self.path).items()}
        committed, pending = (
            Gradient(arrays[f"{which}_dense"], arrays[f"{which}_places"], arrays[f"{which}_rows"])
            for which in ("committed", "pending")
        )
        since, number = (int(value) for value in arrays["rounds"])
        return GradientMemory(committed, None if number < 0 else (number, pending), since)

    def _write(self, memory: GradientMemory) -> None:
        number, pending = memory.pending or (-1, memory.committed)
        arrays = {"rounds": np.array([memory.number, number], dtype=np.int64)}
        for which, gradient in (("committed", memory.committed), ("pending", pending)):
            arrays |= {f"{which}_dense": gradient.dense, f"{which}_places": gradient.places,
                       f"{which}_rows": gradient.rows}
        with aside(self.path) as draft:
            save_weights(draft, arrays)
