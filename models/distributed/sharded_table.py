"""One embedding table over all processes: every row has one owner, who alone keeps it, its moments and its update.

    look up     each process asks the owners for the distinct rows of its batch:    int32 rows there, vectors back
    gradients   one sum per distinct row goes to its owner, who adds those of all processes

Bytes that leave a process in one step, of U distinct rows and P processes (D floats a row):

    U (P - 1) / P * (4 + 4 D + 4 D)

and never a whole table. All processes look up and send equally often, whatever their batches hold: each call is three
exchanges, those of gradients one.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F

from contracts.errors import ConfigError
from contracts.features.feature_spec import PADDING
from models.distributed.routing import Route, route
from models.distributed.world import World
from models.layers.embedding import FusedEmbedding

SCATTER_ROWS = 1 << 18  # rows that travel at once when a table is dealt out or brought together
MOST_ROWS = 2**31 - 1  # rows travel as int32


@dataclass
class Fetched:
    """Vectors [U, D] of the distinct rows of one look-up, and `held` [R]: the own rows that were asked for."""

    vectors: Tensor
    held: Tensor
    sent: list[int]
    asked: list[int]


class ShardedTable:
    """Takes the place of an embedding's weight, which from then on holds the own rows [N / size, D] alone.

    `traffic` counts the bytes that left this process,
    `looked_up` the distinct rows it asked for. Raises ConfigError for more rows than int32 can name.
    """

    def __init__(self, embedding: FusedEmbedding, world: World) -> None:
        whole = embedding.weight.detach()
        if len(whole) > MOST_ROWS:
            raise ConfigError(f"an embedding table of {len(whole)} rows; int32 ids name {MOST_ROWS} at most: give the "
                              "largest vocabularies a higher min_count")
        self.embedding, self.world, self.rows = embedding, world, len(whole)
        self.traffic = self.looked_up = 0
        self._fetched: list[Fetched] = []
        embedding.weight = nn.Parameter(self._dealt(whole))
        embedding.look_up = self.look_up

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
            values.append(self._exchanged(gradient, fetched.sent, fetched.asked))
            rows.append(fetched.held)
        self._fetched.clear()
        own, gradients = torch.cat(rows), torch.cat(values)
        if self.world.rank == PADDING % self.world.size:
            gradients.masked_fill_((own == PADDING // self.world.size)[:, None], 0.0)
        return own, gradients

    def whole(self) -> Tensor:
        """The table [N, D], brought together in every process."""
        mine, size = self.weight.detach(), self.world.size
        table = mine.new_empty(self.rows, mine.shape[1])
        for start in range(0, -(-self.rows // size), SCATTER_ROWS):
            piece = _filled(mine[start : start + SCATTER_ROWS], min(SCATTER_ROWS, -(-self.rows // size) - start))
            parts = [torch.empty_like(piece) for _ in range(size)]
            dist.all_gather(parts, piece)
            for rank, part in enumerate(parts):
                target = table[rank::size][start : start + SCATTER_ROWS]
                target.copy_(part[: len(target)])
        return table

    def restore(self) -> None:
        """The embedding is whole again, in every process, and reads its own weight."""
        table = self.whole()
        self.embedding.weight = nn.Parameter(table)
        self.embedding.look_up = None

    def _fetch(self, found: Route) -> tuple[Tensor, Tensor, list[int]]:
        counts = torch.tensor(found.counts, dtype=torch.int64, device=self.weight.device)
        answer = torch.empty_like(counts)
        dist.all_to_all_single(answer, counts)
        asked = answer.tolist()
        held = self._exchanged(found.rows.int(), found.counts, asked).long()
        vectors = self._exchanged(self.weight.detach()[held], asked, found.counts)
        return held, vectors, asked

    def _exchanged(self, values: Tensor, sent: list[int], received: list[int]) -> Tensor:
        out = values.new_empty(sum(received), *values.shape[1:])
        dist.all_to_all_single(out, values.contiguous(), received, sent)
        leaving = len(values) - sent[self.world.rank]
        self.traffic += leaving * values[:1].numel() * values.element_size() if len(values) else 0
        return out

    def _dealt(self, whole: Tensor) -> Tensor:
        """The own rows of the table of process 0."""
        size, rows = self.world.size, -(-len(whole) // self.world.size)
        mine = whole.new_empty(len(self.world.own(whole)), whole.shape[1])
        for start in range(0, rows, SCATTER_ROWS):
            count = min(SCATTER_ROWS, rows - start)
            parts = None
            if self.world.rank == 0:
                parts = [_filled(whole[rank::size][start : start + count], count) for rank in range(size)]
            piece = whole.new_empty(count, whole.shape[1])
            dist.scatter(piece, parts, src=0)
            target = mine[start : start + count]
            target.copy_(piece[: len(target)])
        return mine


def _filled(rows: Tensor, count: int) -> Tensor:
    """Rows [n, D] and zeros up to [count, D], contiguous."""
    return F.pad(rows, (0, 0, 0, count - len(rows))).contiguous()
