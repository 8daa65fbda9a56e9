"""A window's loss and ranking figures under the weights as they stand, its batches dealt to all processes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from models.distributed import data_parallel
from models.distributed.world import World
from models.examples.batches import Batch, ExampleSet
from models.layers.losses import ClickLoss
from models.training.monitor import Monitor, Validated, validated

BATCH = 16_384  # of losses that hang on what else is in the batch, and of a GPU
ON_CPU = 4_096  # of others: what more rows make is mapped and cleared anew each time, two thirds of the time


def loss_of(loss: nn.Module, batch: Batch, half: bool) -> tuple[Tensor, int]:
    """(sum, number of terms) by a module of models/layers/losses.py; `half`: its products in bf16."""
    with torch.autocast(batch.label.device.type, torch.bfloat16, enabled=half):
        return loss(batch)


@torch.no_grad()
def evaluated(
    loss: nn.Module, examples: ExampleSet, monitor: Monitor, world: World, device: torch.device,
    negative_rate: float = 1.0,
) -> Validated:
    """The same in every process, in float32, as scores are served; AUC and GAUC where clicks are what is learned.

    `negative_rate`: share of the negatives that training kept and `examples` have all of; the loss is of probabilities
    among all."""
    loss.eval()
    total, count = torch.zeros((), dtype=torch.float64, device=device), 0.0
    seen: list[tuple[Tensor, Tensor, Tensor]] = []
    size = ON_CPU if device.type == "cpu" and isinstance(loss, ClickLoss) else BATCH
    for batch, mine in _dealt(examples.batches(size), world):
        value, terms = loss_of(loss, _among_all(batch, negative_rate).pinned(device).to(device), half=False)
        if not mine:
            continue
        total, count = total + value, count + terms
        if isinstance(loss, ClickLoss):
            seen.append((batch.label, loss.logits, batch.user))
    mean_of = data_parallel.total([float(total), count], device, world)
    mean = mean_of[0] / max(mean_of[1], 1.0)
    if not isinstance(loss, ClickLoss):
        return Validated(mean)
    arrays = [tuple(part.cpu().numpy() for part in parts) for parts in seen]
    parts = zip(*data_parallel.gathered(arrays, world), strict=True)
    labels, logits, users = (np.concatenate(part) for part in parts)
    return validated(mean, labels, logits, users, monitor)


def _among_all(batch: Batch, negative_rate: float) -> Batch:
    """For a network that learned with a share of the negatives: its log odds are too high by -ln of the share."""
    if negative_rate == 1.0:
        return batch
    thinned = torch.full_like(batch.label, -math.log(negative_rate))
    return batch._replace(log_draws=thinned if batch.log_draws is None else batch.log_draws + thinned)


def _dealt(batches: Iterator[Batch], world: World) -> Iterator[tuple[Batch, bool]]:
    """Each process its turn of the batches; in a last round that is short of them the others repeat the first of it,
    not as theirs, because embeddings are looked up together."""
    while turn := list(itertools.islice(batches, world.size)):
        mine = world.rank < len(turn)
        yield turn[world.rank if mine else 0], mine
