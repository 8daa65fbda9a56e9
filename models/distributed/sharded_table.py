"""One embedding table over all processes: every row has one owner, who alone keeps it, its moments and its update.

    look up     each process asks the owners for the distinct rows of its batch:    int32 rows there, vectors back
    gradients   one sum per distinct row goes to its owner, who adds those of all processes

Bytes that leave a process in one step, of U distinct rows and P processes (D floats a row):

    U (P - 1) / P * (4 + 4 D + 4 D)

and 8 bytes a process of counts for each look-up, never a whole table. All processes look up and send equally often,
whatever their batches hold: each call is three exchanges, those of gradients one.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from contracts.features.feature_spec import PADDING
from models.distributed import exchange
from models.distributed.routing import Route, route
from models.distributed.whole_table import whole_table
from models.distributed.world import World
from models.layers.embedding import FusedEmbedding
from models.layers.own_rows import WHOLE
from models.layers.product_cross import FactorisedCrosses

Embedding = FusedEmbedding | FactorisedCrosses
COUNT_BYTES = 8  # that say how many rows follow


@dataclass
class Fetched:
    """Vectors [U, D] of the distinct rows of one look-up, and `held` [R]: the own rows that were asked for."""

    vectors: Tensor
    held: Tensor
    sent: list[int]
    asked: list[int]


class ShardedTable:
    """Takes the place of an embedding's weight, which from then on holds the own rows [N / size, D] alone, where it did
    not from the start (models/layers/own_rows.py).

    `traffic` counts the bytes that left this process, `looked_up` the distinct rows it asked for.
    """

    def __init__(self, embedding: Embedding, world: World) -> None:
        self.embedding, self.world, self.rows = embedding, world, embedding.table_rows
        self.traffic = self.looked_up = 0
        self._fetched: list[Fetched] = []
        if embedding.own == WHOLE:
            embedding.weight = nn.Parameter(world.own(embedding.weight.detach()).clone())
        embedding.own, embedding.look_up = slice(world.rank, None, world.size), self.look_up

    @property
    def weight(self) -> nn.Parameter:
        """The own rows."""
        return self.embedding.weight

    def look_up(self, rows: Tensor) -> Tensor:
        """Rows [n] of the whole table -> their vectors [n, D]. All processes call it together, also for none."""
        found = route(rows, self.world.size)
        held, vectors, asked = self._fetch(found)
        self.looked_up += len(found.rows)
        if torch.is_grad_enabled():
            vectors.requires_grad_()
            self._fetched.append(Fetched(vectors, held, found.counts, asked))
        return F.embedding(found.inverse, vectors)

    def gradient(self) -> tuple[Tensor, Tensor]:
        """Own rows [R] in any order and number with gradients [R, D], of all look-ups of all processes since the last
        call. The padding has none."""
        rows, values = [self.weight.new_empty(0, dtype=torch.int64)], [self.weight.new_empty(0, self.weight.shape[1])]
        for fetched in self._fetched:
            gradient = fetched.vectors.grad
            gradient = torch.zeros_like(fetched.vectors) if gradient is None else gradient
            values.append(self._dealt(gradient, fetched.sent, fetched.asked)[0])
            rows.append(fetched.held)
        self._fetched.clear()
        own, gradients = torch.cat(rows), torch.cat(values)
        if self.world.rank == PADDING % self.world.size:
            gradients.masked_fill_((own == PADDING // self.world.size)[:, None], 0.0)
        return own, gradients

    def restore(self) -> None:
        """The embedding is whole again, in every process, and reads its own weight."""
        table = whole_table(self.weight.detach(), self.rows, self.world)
        self.embedding.weight, self.embedding.own = nn.Parameter(table), WHOLE
        self.embedding.look_up = None

    def _fetch(self, found: Route) -> tuple[Tensor, Tensor, list[int]]:
        self.traffic += COUNT_BYTES * (self.world.size - 1)
        asked_for, asked = self._dealt(found.rows.int(), found.counts)
        held = asked_for.long()
        vectors, _ = self._dealt(self.weight.detach().index_select(0, held), asked, found.counts)
        return held, vectors, asked

    def _dealt(self, values: Tensor, sent: list[int], received: list[int] | None = None) -> tuple[Tensor, list[int]]:
        leaving = len(values) - sent[self.world.rank]
        self.traffic += leaving * values.shape[1:].numel() * values.element_size()
        return exchange.current().dealt(values, sent, received)
