"""LightGCN (He et al., SIGIR 2020), torch-geometric's: vectors of users and items smoothed over who took what.

    E_k+1 = D^-1/2 A D^-1/2 E_k,   E = mean of E_0 .. E_layers,   score = e_user . e_item;   trained on BPR

Weights of the best validation NDCG@10 are kept. A user without training actions scores by an untrained vector, as the
model has nothing else to say.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from contracts.features.feature_spec import FIRST_ID
from models.interactions.action_matrix import action_matrix, compressed_rows, sparse
from models.interactions.interactions import Interactions
from models.interactions.retriever import Fitted
from models.interactions.splits import Split
from models.interactions.validation import BestEpoch, validation_ndcg


class LightGcnSettings(BaseModel):
    """`l2` on the vectors of a batch, as the paper has it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    width: int = Field(64, ge=1)
    layers: int = Field(2, ge=0)
    learning_rate: float = Field(5e-3, gt=0)
    l2: float = Field(1e-4, ge=0)
    batch: int = Field(8192, ge=1)
    epochs: int = Field(60, ge=1)
    patience: int = Field(3, ge=1)
    validate_every: int = Field(5, ge=1)


class LightGcn:
    """One seed gives one fit."""

    def __init__(self, settings: LightGcnSettings, seed: int) -> None:
        self.settings, self.seed = settings, seed

    def fit(self, split: Split) -> Fitted:
        """Every action against an item drawn evenly, `batch` actions an update."""
        from torch_geometric.nn.models import LightGCN

        torch.manual_seed(self.seed)
        s, start, log = self.settings, time.perf_counter(), split.train
        model = LightGCN(log.users + log.table, s.width, s.layers, normalize=False)
        graph, pairs = _graph(log), torch.from_numpy(np.stack([log.owners, log.items], 1))
        adam = torch.optim.Adam(model.parameters(), lr=s.learning_rate, fused=True)
        best: BestEpoch[tuple[Tensor, ...]] = BestEpoch(s.patience * s.validate_every)
        spent = 0.0
        for epoch in range(1, s.epochs + 1):
            begin = time.perf_counter()
            for part in torch.randperm(len(pairs)).split(s.batch):
                adam.zero_grad()
                self._loss(model, graph, pairs[part], log).backward()
                adam.step()
            spent += time.perf_counter() - begin
            if epoch % s.validate_every and epoch < s.epochs:
                continue
            self.users, self.items = model.get_embedding(graph).detach().split([log.users, log.table])
            ndcg = validation_ndcg(self, split.validation)
            if not best.goes_on(epoch, ndcg, lambda: (self.users, self.items, self._inward(model, graph))):
                break
        self.users, self.items, self.inward = best.state
        return Fitted(time.perf_counter() - start, len(pairs) * epoch / spent, best.epoch)

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
