"""What is trained together in one round: ranker, position bias, two towers and pre-ranker, as rows and a dense vector.

A row of the space is the ranker's vector and the towers' vector of the same id side by side; the towers know no
crosses, so theirs end earlier. Everything that is no embedding is one flat dense vector.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from contracts.config import Config
from contracts.errors import ConfigError
from contracts.feature_spec import FeatureSpec
from models import registry
from models.batches import Batch
from models.embedding import FusedEmbedding
from models.losses import ClickLoss, PreRankLoss, RetrievalLoss
from models.mlp import Mlp
from models.position_bias import STEP_SCALE, PositionBias
from models.pre_ranker import PreRanker
from models.two_tower import TwoTower


class FederatedNetworks(nn.Module):
    """Fresh weights come from torch's global generator: seed it first."""

    def __init__(self, spec: FeatureSpec, config: Config) -> None:
        super().__init__()
        s, name = config.train, config.federated.model
        self.ranker = registry.build(name, spec, s)
        self.bias = PositionBias(spec.positions)
        self.towers = TwoTower(spec, s.embedding_dim, s.tower_hidden, s.tower_dim, s.dropout, s.temperature)
        self.pre_ranker = PreRanker(s.tower_dim, config.prerank.hidden)
        self._losses = (
            ClickLoss(self.ranker, self.bias), RetrievalLoss(self.towers),
            PreRankLoss(self.pre_ranker, self.towers, self.bias),
        )
        prior = float(np.log(config.federated.prior / (1 - config.federated.prior)))
        for mlp in (getattr(self.ranker, "mlp", None), self.pre_ranker.mlp):
            if isinstance(mlp, Mlp):
                nn.init.constant_(mlp.output_bias, prior)
        if not isinstance(getattr(self.ranker, "embedding", None), FusedEmbedding) or self._lengths()[0] != sum(
            size - 1 for size in spec.tables().values()
        ):
            raise ConfigError(
                f"federated.model is {name!r}, whose embeddings are not one row an id; use din, dnn or dcn_v2"
            )

    def tables(self) -> list[nn.Parameter]:
        return [self.ranker.embedding.weight, self.towers.embedding.weight]  # type: ignore[union-attr,list-item]

    def _lengths(self) -> list[int]:
        return [len(table) - 1 for table in self.tables()]

    def dense_parameters(self) -> list[nn.Parameter]:
        tables = self.tables()
        return [p for p in self.parameters() if not any(p is table for table in tables) and p.numel()]

    def damped(self) -> dict[int, float]:
        """id of a parameter -> what plain descent multiplies its step by: the position bias enters times STEP_SCALE,
        which would make its steps STEP_SCALE^2 times those of a weight."""
        return {id(self.bias.weight): STEP_SCALE**-2}

    @property
    def width(self) -> int:
        return sum(table.shape[1] for table in self.tables())

    @torch.no_grad()
    def read(self) -> tuple[np.ndarray, np.ndarray]:
        """float32 rows [places, width] and dense [D]."""
        rows = np.zeros((self._lengths()[0], self.width), dtype=np.float32)
        start = 0
        for table in self.tables():
            rows[: len(table) - 1, start : start + table.shape[1]] = table[1:].numpy()
            start += table.shape[1]
        return rows, torch.cat([p.reshape(-1) for p in self.dense_parameters()]).numpy().copy()

    @torch.no_grad()
    def write(self, rows: np.ndarray, dense: np.ndarray) -> None:
        start = 0
        for table in self.tables():
            table[1:] = torch.from_numpy(rows[: len(table) - 1, start : start + table.shape[1]].copy())
            start += table.shape[1]
        at = 0
        for parameter in self.dense_parameters():
            parameter.copy_(torch.from_numpy(dense[at : at + parameter.numel()]).view_as(parameter))
            at += parameter.numel()

    def loss(self, batch: Batch) -> tuple[Tensor, float]:
        """What a local step minimises (the mean of each part over its terms), and the ranker's sum of log losses."""
        found = [part(batch) for part in self._losses]
        means = [total / terms for total, terms in found if terms]
        return torch.stack(means).sum(), float(found[0][0].detach())
