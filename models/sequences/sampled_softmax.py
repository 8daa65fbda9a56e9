"""Cross-entropy of the action that followed against negatives shared by the whole batch.

    loss = mean over t of  logsumexp(s_t,target, s_t,1 .. s_t,n) - s_t,target

Negatives are n items drawn evenly, with replacement, once for the batch, so that their scores are one matrix product; a
negative that is the target of a row is left out of that row. With `negatives` at or above the number of items the whole
catalogue is taken: the softmax itself.
"""

from __future__ import annotations

import torch
from torch import Tensor

from contracts.features.feature_spec import FIRST_ID
from models.sequences.encoder import SequenceEncoder


def negatives(table: int, number: int) -> Tensor:
    """int64 [n] from torch's global generator; all items once where there are not more than `number`."""
    if number >= table - FIRST_ID:
        return torch.arange(FIRST_ID, table)
    return torch.randint(FIRST_ID, table, (number,))


def loss(users: Tensor, encoder: SequenceEncoder, target: Tensor, drawn: Tensor) -> Tensor:
    """users [T, D], target [T], drawn [n] -> a scalar."""
    own = (users * encoder.vectors(target)).sum(1)
    others = (users @ encoder.vectors(drawn).T).masked_fill(target[:, None] == drawn, -torch.inf)
    return (torch.logaddexp(own, others.logsumexp(1)) - own).mean()
