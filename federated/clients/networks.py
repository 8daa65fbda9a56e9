"""What is trained together in one round: ranker, position bias, two towers and pre-ranker, as rows and a dense vector.

A row of the space holds all vectors of one id side by side: the ranker's, then the towers'. A linear model keeps a
vector per slot, so an id whose table has two slots (history and candidate) has two there; where a network knows nothing
of an id (towers of crosses) its part of the row is zero. Everything that is no embedding is one flat dense vector.
`federated.retrieval = false` trains the ranker alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from contracts.config.config import Config
from contracts.errors import ConfigError
from contracts.features.feature_spec import FeatureSpec
from federated.clients.row_space import first_places, place_count
from models.examples.batches import Batch
from models.layers.embedding import FusedEmbedding
from models.layers.losses import ClickLoss, PreRankLoss, RetrievalLoss
from models.layers.mlp import Mlp
from models.layers.position_bias import STEP_SCALE, PositionBias
from models.networks import registry
from models.networks.logistic_regression import STEP_SCALE as LINEAR_STEP_SCALE
from models.networks.logistic_regression import LogisticRegression
from models.networks.tower_pre_ranker import PreRanker
from models.networks.two_tower import TwoTower


class Part(NamedTuple):
    """Rows `start` .. of a network's table are places `place` .. of the space; it is the id's `layer`-th vector."""

    place: int
    start: int
    rows: int
    layer: int


def _parts(spec: FeatureSpec, embedding: FusedEmbedding) -> tuple[Part, ...]:
    places = first_places(spec)
    seen: dict[str, list[int]] = {}
    parts = []
    for reader in (embedding.request, embedding.candidate):
        for slot in reader.slots:
            start, starts = embedding.starts[slot.name], seen.setdefault(slot.table, [])
            if start not in starts:
                starts.append(start)
                parts.append(Part(places[slot.table], start + 1, slot.size - 1, len(starts) - 1))
    return tuple(parts)


def _layers(parts: tuple[Part, ...]) -> int:
    return 1 + max((part.layer for part in parts), default=0)


class FederatedNetworks(nn.Module):
    """Fresh weights come from torch's global generator: seed it first."""

    def __init__(self, spec: FeatureSpec, config: Config) -> None:
        super().__init__()
        s, name = config.train, config.federated.model
        self.ranker = registry.build(name, spec, s)
        self.bias = PositionBias(spec.positions)
        self._retrieval = config.federated.retrieval
        self._losses: tuple[nn.Module, ...] = (ClickLoss(self.ranker, self.bias),)
        bias = getattr(self.ranker, "bias", None)
        mlps = [None if isinstance(bias, nn.Parameter) else getattr(self.ranker, "mlp", None)]
        if self._retrieval:
            self.towers = TwoTower(spec, s.embedding_dim, s.tower_hidden, s.tower_dim, s.dropout, s.temperature)
            self.pre_ranker = PreRanker(s.tower_dim, config.prerank.hidden)
            self._losses += (RetrievalLoss(self.towers, hard=s.tower_hard),
                             PreRankLoss(self.pre_ranker, self.towers, self.bias))
            mlps.append(self.pre_ranker.mlp)
        prior = float(np.log(config.federated.prior / (1 - config.federated.prior)))
        for mlp in mlps:
            if isinstance(mlp, Mlp):
                nn.init.constant_(mlp.output_bias, prior)
        if isinstance(bias, nn.Parameter):
            nn.init.constant_(bias, prior / getattr(self.ranker, "step_scale", LINEAR_STEP_SCALE))
        if not isinstance(getattr(self.ranker, "embedding", None), FusedEmbedding):
            raise ConfigError(f"federated.model is {name!r}, which has no embeddings to train; take din or another")
        self._size = place_count(spec)
        self._parts = tuple(_parts(spec, module.embedding) for module in self._embedded())  # type: ignore[arg-type]

    def _embedded(self) -> list[nn.Module]:
        return [self.ranker, self.towers] if self._retrieval else [self.ranker]

    def tables(self) -> list[nn.Parameter]:
        """Embedding tables: the ranker's, then the towers'."""
        return [module.embedding.weight for module in self._embedded()]  # type: ignore[union-attr,misc]

    def dense_parameters(self) -> list[nn.Parameter]:
        """All that is no embedding, in the order of the dense vector."""
        tables = self.tables()
        return [p for p in self.parameters() if not any(p is table for table in tables) and p.numel()]

    def damped(self) -> dict[int, float]:
        """id of a parameter -> what plain descent multiplies its rate by: a weight that enters times S, as the position
        bias and all of a linear model do for Adam's sake, would move S^2 times too far."""
        factors = {id(self.bias.weight): STEP_SCALE**-2}
        if isinstance(self.ranker, LogisticRegression):
            factors |= dict.fromkeys(map(id, self.ranker.parameters()), LINEAR_STEP_SCALE**-2)
        return factors

    @property
    def width(self) -> int:
        """Floats of a row: all vectors of one id side by side."""
        return sum(table.shape[1] * _layers(parts) for table, parts in zip(self.tables(), self._parts, strict=True))

    def _spans(self) -> Iterator[tuple[nn.Parameter, Part, slice]]:
        """Each table's parts, and the columns of a row that they are."""
        start = 0
        for table, parts in zip(self.tables(), self._parts, strict=True):
            width = table.shape[1]
            for part in parts:
                column = start + part.layer * width
                yield table, part, slice(column, column + width)
            start += width * _layers(parts)

    @torch.no_grad()
    def read(self) -> tuple[np.ndarray, np.ndarray]:
        """float32 rows [places, width] and dense [D]."""
        rows = np.zeros((self._size, self.width), dtype=np.float32)
        for table, part, columns in self._spans():
            rows[part.place : part.place + part.rows, columns] = table[part.start : part.start + part.rows].numpy()
        return rows, torch.cat([p.reshape(-1) for p in self.dense_parameters()]).numpy().copy()

    @torch.no_grad()
    def write(self, rows: np.ndarray, dense: np.ndarray) -> None:
        """The inverse of `read`; padding rows stay."""
        for table, part, columns in self._spans():
            vectors = rows[part.place : part.place + part.rows, columns]
            table[part.start : part.start + part.rows] = torch.from_numpy(vectors.copy())
        at = 0
        for parameter in self.dense_parameters():
            parameter.copy_(torch.from_numpy(dense[at : at + parameter.numel()]).view_as(parameter))
            at += parameter.numel()

    def loss(self, batch: Batch) -> tuple[Tensor, float]:
        """What local descent minimises (the mean of each part over its terms), and the ranker's sum of log losses."""
        sums = [part(batch) for part in self._losses]
        means = [total / terms for total, terms in sums if terms]
        return torch.stack(means).sum(), float(sums[0][0].detach())
