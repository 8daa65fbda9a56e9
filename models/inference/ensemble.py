"""The mean of the logits of networks that differ in their seed alone (Lakshminarayanan et al., NeurIPS 2017).

What a single network learned by the chance of its start and of the order of its rows is averaged away.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from models.examples.batches import FeatureBlock

MEMBERS = "members"


class Ensemble(nn.Module):
    """Its members are trained one by one (models/jobs/ranker_training.py)."""

    def __init__(self, members: Iterable[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, request: FeatureBlock, candidate: FeatureBlock) -> Tensor:
        """request of 1 or B rows, candidate of B rows -> logits [B]."""
        return torch.stack([member(request, candidate) for member in self.members]).mean(0)


def size(names: Iterable[str]) -> int:
    """Members of the ensemble whose tensors have these names; 0 of a single network."""
    return len({name.split(".")[1] for name in names if name.startswith(f"{MEMBERS}.")})
