"""Rankers, towers and pre-rankers trained by the one loop of models/training/loop.py, and what they predict.

What is minimised comes in as a module of models/layers/losses.py; what a network is made ready with before, and freed
of after, is done here.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from contracts.config.training import Train
from models.distributed import data_parallel
from models.distributed.run_checkpoint import RunCheckpoint
from models.distributed.shared_candidates import SharedCandidates
from models.examples.batches import ExampleSet
from models.examples.shown_items import shown_items
from models.layers import batch_norm
from models.layers.embedding import FusedEmbedding, item_slot
from models.layers.item_prior import ItemPrior
from models.layers.losses import ClickLoss, PreRankLoss, RetrievalLoss
from models.layers.position_bias import PositionBias
from models.training.loop import Change, FitResult, Loop, OnBatch, OnEpoch
from models.training.precision import half_precision
from models.training.prior_weight import weigh_prior
from models.training.unknown_ids import UnknownIds, dropped_shares
from models.training.validation import ON_CPU

PRODUCT_SHARE = 0.01  # of the penalty: where vectors are multiplied alone, a stronger one keeps all products at zero
ON_GPU = 65_536  # rows predicted at once
Start = Callable[[nn.Module], object]  # gives a prepared network weights to start from; says what, None: nothing


def fit(
    network: nn.Module, train: ExampleSet, validation: ExampleSet, settings: Train, seed: int, *, positions: int = 0,
    start: Start | None = None, on_epoch: OnEpoch | None = None, on_batch: OnBatch | None = None,
    kept: RunCheckpoint | None = None, negative_rate: float = 1.0,
) -> FitResult:
    """Trains a ranker on log loss and leaves the weights of its best epoch in it, on the CPU, in evaluation mode.

    Popularity, unknown ids and batch normalisation come in here, by the settings; the last is folded away at the end,
    and validation says how much popularity counts beside what was learned.
    `on_batch(done, all)` counts the batches of the epoch; `negative_rate` is the share of the negatives that `train`
    has, and `validation` has all of, among which its loss is. Raises SluiceError when the loss is not finite.
    """
    trained = any(parameter.requires_grad for parameter in network.parameters())
    bias = PositionBias(positions if trained else 0)
    _prepare(network, train, bias, settings.item_prior)
    if settings.batch_norm:
        batch_norm.shrink_embeddings(network)
    carried = start(network) if start else None
    if settings.batch_norm and not carried:
        batch_norm.insert(network)
    change = None
    if trained and settings.unknown_ids:
        change = UnknownIds(train.spec, data_parallel.by_first(lambda: dropped_shares(train.spec, train, validation)))
    loss = ClickLoss(network, bias, settings.label_smoothing)
    half = half_precision(settings, data_parallel.resolve_device(settings.device), settings.batch_rows(train.rows))
    loop = Loop(loss, [network, bias], settings, seed, settings.epochs, schedule=settings.schedule,
                change=change, half=half, negative_rate=negative_rate)
    deep = batch_norm.hidden_units(network)
    tables = [module for module in network.modules() if isinstance(module, FusedEmbedding)]
    products = not deep and any(table.weight.shape[1] > 1 for table in tables)
    loop.weigh_rows(train, settings.embedding_l2 * (PRODUCT_SHARE if products else 1.0), paced=deep)
    result = loop.run(train, validation, on_epoch, on_batch, bias, kept)
    batch_norm.fold(network)
    weigh_prior(network, bias, validation)
    return result


def fit_towers(
    two_tower: nn.Module, train: ExampleSet, validation: ExampleSet, settings: Train, seed: int, *,
    change: Change | None = None, start: Start | None = None, on_epoch: OnEpoch | None = None,
    on_batch: OnBatch | None = None, kept: RunCheckpoint | None = None,
) -> FitResult:
    """On the sampled softmax of clicks against the items shown, in all processes, and those that `settings` draw, for
    `tower_epochs`; `change` is of training batches; all else as `fit`."""
    _prepare(two_tower, train)
    if start:
        start(two_tower)
    shown = shown_items([train], item_slot(train.spec)) if settings.tower_mixed else None
    catalogue = shown if shown and len(shown.ids) else None
    world = data_parallel.join(data_parallel.resolve_device(settings.device))
    loss = RetrievalLoss(two_tower, catalogue, settings.tower_mixed if catalogue else 0, settings.tower_hard,
                         SharedCandidates(world) if world.size > 1 else None)
    loop = Loop(loss, [two_tower], settings, seed, settings.tower_epochs, change=change)
    return loop.run(train, validation, on_epoch, on_batch, kept=kept)


def fit_pre_ranker(
    pre_ranker: nn.Module, two_tower: nn.Module, train: ExampleSet, validation: ExampleSet, settings: Train, seed: int,
    *, positions: int = 0, start: Start | None = None, on_epoch: OnEpoch | None = None,
    on_batch: OnBatch | None = None, kept: RunCheckpoint | None = None, negative_rate: float = 1.0,
) -> FitResult:
    """As `fit_towers`, for the pre-ranker on frozen tower vectors and log loss; `negative_rate` as in `fit`."""
    bias = PositionBias(positions)
    _prepare(pre_ranker, train, bias)
    if start:
        start(pre_ranker)
    loop = Loop(PreRankLoss(pre_ranker, two_tower, bias), [pre_ranker, bias], settings, seed, settings.tower_epochs,
                negative_rate=negative_rate)
    return loop.run(train, validation, on_epoch, on_batch, bias, kept)


def _prepare(
    network: nn.Module, train: ExampleSet, bias: PositionBias | None = None, popularity: bool = False
) -> None:
    """What the training window says before training; of several processes the first alone reads it, and the loop gives
    its weights to all."""
    data_parallel.by_first(lambda: _counted(network, train, bias, popularity))


def _counted(network: nn.Module, train: ExampleSet, bias: PositionBias | None, popularity: bool) -> None:
    network.prepare(train)  # type: ignore[operator]
    if bias is not None:
        bias.start_at(train)
    for module in network.modules():
        if popularity and isinstance(module, ItemPrior):
            module.start_at(train)


@torch.inference_mode()
def predict(network: nn.Module, examples: ExampleSet, batch_size: int | None = None) -> np.ndarray:
    """Logits at position 1, float64 [N], in file order."""
    network.eval()
    device = next((tensor.device for tensor in network.state_dict().values()), torch.device("cpu"))
    parts = []
    for batch in examples.batches(batch_size or (ON_CPU if device.type == "cpu" else ON_GPU)):
        batch = batch.to(device)
        parts.append(network(batch.request, batch.candidate).double().cpu().numpy())
    return np.concatenate(parts)
