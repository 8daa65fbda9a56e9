"""Cross-entropy of the action that followed against negatives shared by the whole batch.

    loss = mean over t of  logsumexp(s_t,target, s_t,1 .. s_t,n) - s_t,target

Negatives are n items drawn evenly, with replacement, once for the batch, so that their scores are one matrix product; a
negative that is the target of a row is left out of that row. With `negatives` at or above the number of items the whole
catalogue is taken: the softmax itself (models/sequences/catalogue_softmax.py).
"""

from __future__ import annotations

import torch
from torch import Tensor

from contracts.features.feature_spec import FIRST_ID
from models.sequences.catalogue_softmax import catalogue_softmax
from models.sequences.encoder import SequenceEncoder


def negatives(table: int, number: int) -> Tensor | None:
    """int64 [n] from torch's global generator; None where there are not more items than `number`: all of them."""
    if number >= table - FIRST_ID:
        return None
    return torch.randint(FIRST_ID, table, (number,))


def loss(users: Tensor, encoder: SequenceEncoder, target: Tensor, drawn: Tensor | None) -> Tensor:
    """users [T, D], target [T], drawn [n], None for all items -> a scalar."""
    if drawn is None:
        return catalogue_softmax(users, encoder.vectors()[FIRST_ID:], target - FIRST_ID)
    own = (users * encoder.vectors(target)).sum(1)
    others = (users @ encoder.vectors(drawn).T).masked_fill(target[:, None] == drawn, -torch.inf)
    return (torch.logaddexp(own, others.logsumexp(1)) - own).mean()
