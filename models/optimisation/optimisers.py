"""Who moves what: AdamW the dense parameters, RowAdam the rows of the fused embeddings and of the factors of product
crosses that a batch has, after one clipping of all gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from contracts.config.training import Train
from models.distributed.gradient_sum import GradientSum, Summed
from models.distributed.sharded_table import Embedding, ShardedTable
from models.distributed.world import ALONE, World
from models.examples.batches import ExampleSet
from models.layers.embedding import FusedEmbedding
from models.layers.product_cross import FactorisedCrosses
from models.optimisation.row_adam import RowAdam, RowGradient
from models.optimisation.row_shares import batch_shares, paces, penalties

SLIGHT = 1e-6  # joins a norm that is divided by
MANY_ROWS = 10_000_000  # from which a table's second moments are one a row


class Optimisers:
    """`trained` are the modules whose parameters move; a parameter that takes no gradient now stays as it is.

    `parameters` are all of them, `dense` those of AdamW. In several processes every one holds its own rows of each
    embedding (models/distributed/sharded_table.py) and all of the rest.
    """

    def __init__(self, trained: Sequence[nn.Module], settings: Train, world: World = ALONE) -> None:
        self.world = world
        self.clip_norm = settings.clip_norm
        embedded = [m for part in trained for m in part.modules() if isinstance(m, FusedEmbedding | FactorisedCrosses)]
        self.embeddings: list[Embedding] = [m for m in embedded if m.weight.requires_grad]
        for embedding in self.embeddings:
            if isinstance(embedding, FactorisedCrosses):
                embedding.sparse = True
        self.tables = [ShardedTable(embedding, world) for embedding in self.embeddings] if world.size > 1 else []
        self.parameters = [p for module in trained for p in module.parameters() if p.numel() and p.requires_grad]
        tables = [embedding.weight for embedding in self.embeddings]
        self.dense = [p for p in self.parameters if not any(p is table for table in tables)]
        rate, decay = settings.learning_rate, settings.weight_decay
        self.row_adams = [RowAdam(embedding.weight, rate, decay, by_row=_by_row(settings, embedding))
                          for embedding in self.embeddings]
        self.adam = torch.optim.AdamW(self.dense, lr=rate, weight_decay=decay, fused=True) if self.dense else None
        self._rate = rate
        summing = [adam.summed for adam in self.row_adams]
        self._sum = GradientSum(self.dense, [*zip(self.tables, summing, strict=False)], world)
        self._received: Summed | None = None

    @property
    def learning_rate(self) -> float:
        return self._rate

    @learning_rate.setter
    def learning_rate(self, rate: float) -> None:
        self._rate = rate
        for group in self.adam.param_groups if self.adam else ():
            group["lr"] = rate
        for row_adam in self.row_adams:
            row_adam.learning_rate = rate

    @property
    def bytes_sent(self) -> float:
        """That left this process since the start; of N bytes added up over P processes 2 N (P - 1) / P, by a ring."""
        return self._sum.traffic + sum(table.traffic for table in self.tables)

    @property
    def rows_looked_up(self) -> int:
        """Distinct rows of all look-ups of this process since the start."""
        return sum(table.looked_up for table in self.tables)

    def weigh_rows(self, train: ExampleSet, strength: float, batch_rows: int, paced: bool = True) -> None:
        """Gives the rows of the embeddings their penalty and pace, by how often the training window has them.

        Not `paced` are those of a linear model: a weight there is an effect, and one row must not make it large.
        Factors of products are no vectors of values: they are paced in every model and have no penalty.
        """
        for embedding, adam in zip(self.embeddings, self.row_adams, strict=True):
            fused = isinstance(embedding, FusedEmbedding)
            shares = batch_shares(embedding, train, batch_rows).to(adam.weight.device)
            adam.l2 = penalties(shares, strength, train.rows) if fused else None
            adam.pace = paces(shares) if paced or not fused else None

    def zero_gradients(self) -> None:
        """Before each backward pass."""
        for parameter in self.parameters:
            parameter.grad = None

    def sum_gradients(self, value: Tensor, terms: int, wish: float) -> Summed:
        """Of all processes, as means over their terms."""
        self._received = self._sum(value, terms, wish)
        return self._received

    def step(self) -> None:
        """One update by the gradients that the parameters hold, or that came from all processes."""
        dense = [p.grad for p in self.dense if p.grad is not None]
        sparse = self._row_gradients()
        self._clip(dense, [gradient.values for _, gradient in sparse])
        if self.adam:
            self.adam.step()
        for row_adam, gradient in sparse:
            row_adam.step(*gradient)

    def rows_state(self) -> dict[str, Tensor]:
        """Per embedding the own rows of weight, moments and counts, themselves and no copies."""
        return {f"{kind}{number}": tensor for number, adam in enumerate(self.row_adams)
                for kind, tensor in adam.state().items()}

    def dense_state(self) -> dict[str, Tensor]:
        """The replicated parameters and the moments they have; `load_dense` takes it back."""
        state: dict[str, Tensor] = {f"dense{number}": parameter for number, parameter in enumerate(self.dense)}
        for number, parameter in enumerate(self.dense):
            moments = self.adam.state.get(parameter, {}) if self.adam else {}
            state |= {f"dense{number}.{name}": moment for name, moment in moments.items()}
        return state

    @torch.no_grad()
    def load_dense(self, state: Mapping[str, Tensor]) -> None:
        """Parameters and moments as `dense_state` gave them."""
        for number, parameter in enumerate(self.dense):
            parameter.copy_(state[f"dense{number}"])
            head = f"dense{number}."
            moments = {name.removeprefix(head): moment for name, moment in state.items() if name.startswith(head)}
            if self.adam and moments:
                self.adam.state[parameter] = {name: moment.to(parameter.device) for name, moment in moments.items()}

    def restore(self) -> None:
        """Every process has whole embeddings again; no further update follows."""
        self._sum.close()
        for table in self.tables:
            table.restore()

    def _row_gradients(self) -> list[tuple[RowAdam, RowGradient]]:
        if self._received is None:
            return [(adam, found) for adam in self.row_adams if (found := adam.gradient()) is not None]
        return [(adam, RowGradient(*found)) for adam, found in zip(self.row_adams, self._received.rows, strict=True)]

    def _clip(self, dense: list[Tensor], rows: list[Tensor]) -> None:
        """Where nobody has to wait for the norm, gradients of a small one are not walked once more. A norm that is no
        number goes into all of them, so that the next loss ends the run."""
        norm = self._norm(dense, rows)
        if norm.is_cuda or not float(norm) + SLIGHT <= self.clip_norm:
            torch._foreach_mul_([*dense, *rows], (self.clip_norm / (norm + SLIGHT)).clamp(max=1.0))

    def _norm(self, dense: list[Tensor], rows: list[Tensor]) -> Tensor:
        if self._received is None:
            return torch.linalg.vector_norm(torch.stack(torch._foreach_norm([*dense, *rows])))
        of_rows = torch.tensor(self._received.row_norm, device=(dense or rows)[0].device)
        return torch.linalg.vector_norm(torch.stack([*torch._foreach_norm(dense), of_rows]))


def _by_row(settings: Train, embedding: Embedding) -> bool:
    """Of the whole table, so that the number of processes does not decide."""
    large = embedding.weight.shape[1] > 1 and embedding.table_rows >= MANY_ROWS
    return settings.second_moment == "row" or (settings.second_moment == "auto" and large)
