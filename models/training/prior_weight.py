"""How much of what a ranker has learned counts beside the popularity within it, by the validation rows.

    label ~ sigmoid(a (g - mean g) + c + p)     g: what the ranker adds to the item's prior p where the row was shown

What was learned of few rows, or of users who never come again, is too sure of itself: a < 1. Where it is by more than
chance gives (one standard error), g becomes mean g + a' (g - mean g), a' = a less that error, by the ranker's last
layers, so that the order of items goes back towards popularity as far as the rows ask for, and not less for the luck of
a few users. A priori a is 1 +- 1. Levels are calibration's: c is fitted and not taken over.

Rows of one user stand or fall together, so that the error is the larger of the model's own and the one that sums the
slopes of each user's rows first (Liang & Zeger, Biometrika 1986). Without users every row is its own.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from models.distributed.data_parallel import by_first
from models.examples.batches import ExampleSet
from models.layers.item_prior import ItemPrior
from models.layers.losses import as_drawn

BATCH, NEWTON_STEPS = 16_384, 25
LEAST = 0.1  # among items of one popularity the order is still what the ranker says


@torch.no_grad()
def weigh_prior(network: nn.Module, position_bias: nn.Module, validation: ExampleSet) -> float:
    """Damps the network, on the CPU and in evaluation mode, and returns a'; one that cannot `rescale` what it learned,
    or has no prior, is left alone. Of several processes the first reads the rows, and all damp."""
    priors = [module for module in network.modules() if isinstance(module, ItemPrior) and module.logit.any()]
    if len(priors) != 1 or not hasattr(network, "rescale"):
        return 1.0
    share, level = by_first(lambda: _borne_out(network, priors[0], position_bias, validation))
    if share < 1.0:
        network.rescale(share, (1.0 - share) * level)  # type: ignore[operator]
    return share


def _borne_out(
    network: nn.Module, item_prior: ItemPrior, position_bias: nn.Module, validation: ExampleSet
) -> tuple[float, float]:
    """a' and mean g."""
    parts = []
    for batch in validation.batches(BATCH):
        prior = item_prior(batch.candidate)
        added = network(batch.request, batch.candidate) - prior
        rest = as_drawn(prior + position_bias(batch.position), batch)
        together = batch.user if validation.spec.has_users else batch.row
        parts.append([together.numpy(), *(part.double().numpy() for part in (batch.label, added, rest))])
    groups, labels, learned, known = (np.concatenate(part) for part in zip(*parts, strict=True))
    return borne_out(labels, learned, known, groups), float(learned.mean())


def borne_out(labels: np.ndarray, learned: np.ndarray, known: np.ndarray, groups: np.ndarray | None = None) -> float:
    """a' of the formula, from LEAST to 1; flat arrays [N], logits; `known` are added as they are, rows of one value of
    `groups` belong together."""
    level = float(learned.mean())
    inputs = np.stack([learned - level, np.ones_like(learned)], axis=1)
    weights = centre = np.array([1.0, level])
    curvature = precision = np.diag([1.0, 1e-6])
    for _ in range(NEWTON_STEPS):
        rates = 0.5 + 0.5 * np.tanh((inputs @ weights + known) / 2.0)
        slope = inputs.T @ (rates - labels) + precision @ (weights - centre)
        curvature = inputs.T @ (inputs * (rates * (1.0 - rates))[:, None]) + precision
        step = np.linalg.solve(curvature, slope)
        weights = weights - step / max(1.0, float(np.abs(step).max()))
    spread, slopes = np.linalg.inv(curvature), inputs * (rates - labels)[:, None]
    share, chance = float(weights[0]), float(np.sqrt(max(spread[0, 0], _by_group(spread, slopes, groups)[0, 0])))
    return max(share - chance, LEAST) if 1.0 - share > chance else 1.0


def _by_group(spread: np.ndarray, slopes: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """Variance [2, 2] of the weights where only the groups are independent: V (sum of s s^T) V, s a group's slopes."""
    _, places = np.unique(np.arange(len(slopes)) if groups is None else groups, return_inverse=True)
    sums = np.stack([np.bincount(places, weights=column) for column in slopes.T])
    return spread @ sums @ sums.T @ spread
