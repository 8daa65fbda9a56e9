"""LightGCN (He et al., SIGIR 2020), torch-geometric's: vectors of users and items smoothed over who took what.

    E_k+1 = D^-1/2 A D^-1/2 E_k,   E = mean of E_0 .. E_layers,   score = e_user . e_item;   trained on BPR

Weights of the best validation NDCG@10 are kept; a fit that was ended in the middle goes on from its checkpoint. A user
without training actions scores by an untrained vector, as the model has nothing else to say.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from contracts.features.feature_spec import FIRST_ID
from contracts.progress import report
from models.distributed.run_checkpoint import RunCheckpoint
from models.interactions.action_matrix import action_matrix, compressed_rows, sparse
from models.interactions.interactions import Interactions
from models.interactions.kept_fit import FitProgress, KeptFit
from models.interactions.retriever import Fitted
from models.interactions.splits import Split
from models.interactions.validation import BestEpoch, validation_ndcg


class LightGcnSettings(BaseModel):
    """`l2` on the vectors of a batch, as the paper has it. `patience` validations without a better one end a fit: it
    learns slowly and unevenly, and half as many stop a seed early."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    width: int = Field(64, ge=1)
    layers: int = Field(2, ge=0)
    learning_rate: float = Field(5e-3, gt=0)
    l2: float = Field(1e-4, ge=0)
    batch: int = Field(8192, ge=1)
    epochs: int = Field(60, ge=1)
    patience: int = Field(6, ge=1)
    validate_every: int = Field(5, ge=1)


class LightGcn:
    """One seed gives one fit."""

    kept: RunCheckpoint | None = None  # where a fit is taken up from and written to

    def __init__(self, settings: LightGcnSettings, seed: int) -> None:
        self.settings, self.seed = settings, seed

    def fit(self, split: Split) -> Fitted:
        """Every action against an item drawn evenly, `batch` actions an update."""
        from torch_geometric.nn.models import LightGCN

        torch.manual_seed(self.seed)
        s, begin, log = self.settings, time.perf_counter(), split.train
        model = LightGCN(log.users + log.table, s.width, s.layers, normalize=False)
        graph = _graph(log)
        adam = torch.optim.Adam(model.parameters(), lr=s.learning_rate, fused=True)
        best: BestEpoch[dict[str, Tensor]] = BestEpoch(s.patience * s.validate_every)
        spent, seen = 0.0, 0
        with KeptFit(self.kept, {"model": model}, adam, best) as run:
            now = run.take_up()
            while now.epoch <= s.epochs:
                start, before = time.perf_counter(), now.rows
                now = self._epoch(model, graph, adam, log, now, run)
                spent, seen = spent + time.perf_counter() - start, seen + now.rows - before
                report("epochs of light_gcn", now.epoch, s.epochs)
                if not self._goes_on(model, graph, split, now.epoch, best):
                    break
                now = FitProgress(epoch=now.epoch + 1)
        self.users, self.items, self.inward = (best.state[name] for name in ("users", "items", "inward"))
        return Fitted(time.perf_counter() - begin, seen / spent if seen else 0.0, best.epoch)

    def _epoch(self, model: torch.nn.Module, graph: Tensor, adam: torch.optim.Optimizer, log: Interactions,
               now: FitProgress, run: KeptFit) -> FitProgress:
        """From where `now` stands in the epoch to its end."""
        pairs = torch.from_numpy(np.stack([log.owners, log.items], 1))
        run.begin_epoch(now)
        parts = torch.randperm(len(pairs)).split(self.settings.batch)
        run.go_on(now)
        for part in parts[now.batch:]:
            adam.zero_grad()
            self._loss(model, graph, pairs[part], log).backward()
            adam.step()
            now = now.model_copy(update={"batch": now.batch + 1, "rows": now.rows + len(part)})
            run.keep(now)
        return now

    def _goes_on(self, model: torch.nn.Module, graph: Tensor, split: Split, epoch: int,
                 best: BestEpoch[dict[str, Tensor]]) -> bool:
        """After an epoch, which is validated when its turn has come."""
        if epoch % self.settings.validate_every and epoch < self.settings.epochs:
            return True
        vectors = model.get_embedding(graph).detach()  # type: ignore[operator]
        self.users, self.items = vectors.split([split.train.users, split.train.table])
        return best.goes_on(epoch, validation_ndcg(self, split.validation), lambda: {
            "users": self.users, "items": self.items, "inward": self._inward(model, graph)})

    def _loss(self, model: torch.nn.Module, graph: Tensor, pairs: Tensor, log: Interactions) -> Tensor:
        user, item = pairs.T
        drawn = torch.randint(FIRST_ID, log.table, (len(pairs),))
        vectors = model.get_embedding(graph)  # type: ignore[operator]
        own, other = ((vectors[user] * vectors[log.users + node]).sum(1) for node in (item, drawn))
        nodes = torch.cat([user, log.users + item, log.users + drawn])
        return model.recommendation_loss(own, other, node_id=nodes, lambda_reg=self.settings.l2)  # type: ignore[operator]

    @torch.no_grad()
    def _inward(self, model: torch.nn.Module, graph: Tensor) -> Tensor:
        """[table, width]: what an item adds to the vector of a user who took n, times sqrt(n): the sum over k < layers
        of E_k,i / ((layers + 1) sqrt(n_i)), n_i users of the item."""
        vectors, table = model.embedding.weight, len(self.items)  # type: ignore[union-attr]
        total = torch.zeros_like(self.items)
        for _ in range(self.settings.layers):
            total += vectors[-table:]  # type: ignore[index]
            vectors = graph @ vectors  # type: ignore[operator]
        takers = graph.crow_indices().diff()[-table:].clamp(min=1)
        return total / (self.settings.layers + 1) / takers.sqrt()[:, None]

    def scores(self, users: np.ndarray, history: Interactions) -> Tensor:
        """[U, table]."""
        return self.users[torch.from_numpy(users)] @ self.items.T


def _graph(log: Interactions) -> Tensor:
    """D^-1/2 A D^-1/2 [users + table, users + table]: both directions of every action, in compressed rows."""
    row, column = action_matrix(log).indices()
    column = column + log.users
    size = log.users + log.table
    place = torch.cat([row * size + column, column * size + row]).sort().values
    start, end = place // size, place % size
    scale = torch.bincount(start, minlength=size).clamp(min=1).rsqrt()
    return compressed_rows(sparse(torch.stack([start, end]), scale[start] * scale[end], size, size))
