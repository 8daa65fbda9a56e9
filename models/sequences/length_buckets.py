"""Sequences in batches of about equal length, so that almost no work goes into padding.

Users are shuffled, sorted by length within a stretch of batches, cut so that each batch predicts about the same number
of actions, and the batches are shuffled. A sequence stands at the left of its row; under a causal mask nothing looks at
the padding to its right, so that no mask of lengths is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from models.interactions.interactions import Interactions

STRETCH = 64  # batches whose users are sorted together


class SequenceBatch(NamedTuple):
    """items [U, L] with 0 behind each sequence, events [U, L, E] what is told of them; place [T]: flat index of every
    position that predicts; target [T]."""

    items: Tensor
    place: Tensor
    target: Tensor
    events: Tensor


def batches(
    log: Interactions, length: int, size: int, random: np.random.Generator, horizon: int = 1
) -> Iterator[SequenceBatch]:
    """One epoch: each action but a user's first is predicted once, from at most `length` actions before it among the
    latest `length` + 1; about `size` predictions a batch."""
    lengths = np.minimum(log.lengths, length + 1)
    users = random.permutation(np.flatnonzero(lengths > 1))
    rows = lengths - 1
    parts: list[np.ndarray] = []
    for stretch in _cut(users, rows, size * STRETCH):
        parts += _cut(stretch[np.argsort(rows[stretch], kind="stable")], rows, size)
    for number in random.permutation(len(parts)):
        made = batch(log, parts[number], int(rows[parts[number]].max()))
        yield made if horizon == 1 else _farther(made, horizon, random)


def batch(log: Interactions, users: np.ndarray, width: int) -> SequenceBatch:
    """All but the last of the latest `width` + 1 actions of each user, and the action after each."""
    taken = log.padded(users, width + 1)
    target = taken[:, 1:]
    place = np.flatnonzero(target)
    items = np.where(target > 0, taken[:, :-1], 0)
    events = log.padded_events(users, width + 1)[:, :-1] * (target > 0)[:, :, None]
    return SequenceBatch(torch.from_numpy(items), torch.from_numpy(place), torch.from_numpy(target.ravel()[place]),
                         torch.from_numpy(events))


def _farther(made: SequenceBatch, horizon: int, random: np.random.Generator) -> SequenceBatch:
    """Targets up to `horizon` actions ahead, drawn evenly from those of the same sequence."""
    row = made.place // made.items.shape[1]
    last = torch.searchsorted(row, row, right=True) - 1
    place = torch.arange(len(row))
    room = (last - place).clamp(max=horizon - 1) + 1
    step = torch.from_numpy(random.random(len(row))) * room
    return made._replace(target=made.target[place + step.long()])


def _cut(users: np.ndarray, rows: np.ndarray, size: int) -> list[np.ndarray]:
    """Consecutive users with about `size` rows together."""
    total = np.cumsum(rows[users])
    pieces = max(1, round(total[-1] / size)) if len(users) else 0
    if pieces < 2:
        return [users] if pieces else []
    ends = np.searchsorted(total, np.linspace(0, total[-1], pieces + 1)[1:-1])
    return [part for part in np.split(users, ends) if len(part)]
