"""The server's half of `train`: each client gets the rows that it named, and its masked update joins the sum."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from federated.protocol.key_agreement import KeyAgreement
from federated.protocol.messages import MEAN_SAMPLES, VOIDED, MadeWhenSent, Message, get, numbers
from federated.protocol.questions import Steps
from federated.protocol.sum_opening import open_sum, secure_sum
from federated.secure_aggregation.masking import NO_ROWS, Total
from federated.secure_aggregation.unmasking import model_hash


class UpdatePhase:
    """`tables` [space, width] and `dense` [D]: the model as it stands; `further`: what a client is told beside it."""

    def __init__(
        self, keys: KeyAgreement, tables: np.ndarray, dense: np.ndarray, further: Mapping[int, Message]
    ) -> None:
        self.keys, self.tables, self.dense, self.further = keys, tables, dense, further
        self._told_last: tuple[np.ndarray, bytes] | None = None
        self._sent_last: tuple[np.ndarray, np.ndarray] | None = None

    def run(self, places: Mapping[int, np.ndarray]) -> Steps[tuple[Total, list[int]]]:
        """The opened sum of updates, and the clients whose uploads are in it. `places`: client -> the rows that it
        named. Raises RoundAbandoned."""
        plan, phases = self.keys.plan, self.keys.phases
        layouts = {client: plan.update_layout(mine) for client, mine in places.items()}
        secure = secure_sum(self.keys, "update", plan.update_layout(NO_ROWS), list(places), self._told)

        def add(client: int, reply: Message) -> None:
            layout = layouts[client]
            secure.accept(client, layout, get(reply, "words", layout.dtype, (layout.size,)))

        uploads = yield from phases.ask(
            "train", MadeWhenSent(places, lambda client: self._submodel(client, places, secure.graph)), add)
        phases.require(len(uploads), "train")
        total, _ = yield from open_sum(self.keys, secure, places)
        return total, sorted(uploads)

    def _submodel(self, client: int, places: Mapping[int, np.ndarray], graph: Mapping[int, list[int]]) -> Message:
        plan, mine = self.keys.plan, places[client]
        message = {"rows": self._rows(mine), "dense": self.dense, **self.keys.shares_for(client, "train")}
        message |= self.further.get(client, {})
        if plan.masked:
            message["peers"] = numbers(graph[client])
        if plan.masking == "per_row":
            both = [np.packbits(np.isin(mine, places[peer], assume_unique=True)) for peer in graph[client]]
            message["both"] = np.array(both, dtype=np.uint8).reshape(len(both), -(-len(mine) // 8))
        return message

    def _rows(self, places: np.ndarray) -> np.ndarray:
        """Of the model; where all clients train the same places they are taken out once."""
        if self._sent_last is None or places is not self._sent_last[0]:
            self._sent_last = places, self.tables[places]
        return self._sent_last[1]

    def _told(self, places: np.ndarray) -> bytes:
        """Hash of the model at these places. Pairs that share all rows of a round follow each other: the last one is
        kept."""
        if self._told_last is None or not np.array_equal(places, self._told_last[0]):
            beside = next(((float(told[MEAN_SAMPLES][()]), *told[VOIDED].tolist()) for told in self.further.values()),
                          (0.0,))
            self._told_last = places, model_hash(self.dense, self.tables[places], beside)
        return self._told_last[1]
