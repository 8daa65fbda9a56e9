"""In training, some requesters are made ones of whom nothing is known, so that a tower learns what their context says.

Of SHARE of the rows the user's side is replaced by what the encoder writes for a user who is in no table and has done
nothing: the row that a server reads for such a one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from contracts.features.encoding import Encoded, Encoder
from contracts.features.feature_spec import FeatureSpec
from contracts.features.vocabulary import Vocabulary
from models.examples.batches import Batch, FeatureBlock

SHARE = 0.05


class Nobody:
    """`user` [1, ...]: the encoder's row of the user's side for nothing."""

    def __init__(self, user: Encoded, share: float = SHARE) -> None:
        self.ids, self.dense, self._share = torch.from_numpy(user.ids[0]), torch.from_numpy(user.dense[0]), share

    @classmethod
    def of(cls, spec: FeatureSpec, share: float = SHARE) -> Nobody:
        """What is missing is encoded without a look at any vocabulary."""
        empty = {field.vocabulary or "": Vocabulary.of([], field.key_type) for field in spec.fields}
        return cls(Encoder(spec, empty).encode({}, "user"), share)

    def __call__(self, batch: Batch) -> Batch:
        """Draws come from torch's global generator of the batch's device."""
        drawn = torch.rand(len(batch.label), device=batch.label.device) < self._share
        return batch._replace(request=self.without_users(batch.request, drawn))

    def without_users(self, request: FeatureBlock, rows: Tensor) -> FeatureBlock:
        """The requests [B, ...], those of the mask [B] by nobody; their context stays."""
        return FeatureBlock(_replaced(request.ids, self.ids, rows), _replaced(request.dense, self.dense, rows))


def _replaced(block: Tensor, row: Tensor, rows: Tensor) -> Tensor:
    """A block's first columns are the user's."""
    found, width = block.clone(), len(row)
    found[:, :width] = torch.where(rows[:, None], row.to(block.device, block.dtype), block[:, :width])
    return found
