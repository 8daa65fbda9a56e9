"""The two towers and, where it is wanted, their pre-ranker from settings to files, with the clicks each lets through.

Saved under models/two_tower and models/pre_ranker, restartable as the rankers are. The pre-ranker is calibrated on the
same half of the validation window as they are: where no time is left to rank, its probabilities set the prices.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from contracts.artifacts import CALIBRATION, LABEL, WEIGHTS
from contracts.bundle.bundle import save_weights
from contracts.config.training import Train
from contracts.features.feature_spec import FeatureSpec
from contracts.summaries import summary
from contracts.summaries.summary import Summary
from contracts.summaries.train import (
    CalibratedFigures,
    ColdRecall,
    PreRankerSummary,
    PreRankRecall,
    TowerRecall,
    TowerSummary,
)
from models.distributed import data_parallel
from models.evaluation import retrieval_recall
from models.evaluation.cold_recall import cold_recall
from models.evaluation.evaluate import evaluate
from models.evaluation.retrieval_recall import Catalogue, Clicks
from models.evaluation.slot_calibration import position_logit, pre_ranker_curve, telling
from models.examples.nobody import Nobody
from models.jobs.carried_weights import CarriedWeights
from models.jobs.fitted_model import FittedModel
from models.jobs.model_tracking import end_run, log_epochs, start_run
from models.jobs.resume import TOWER, clear_runs, digest, finished, kept_run, take_summary_away
from models.jobs.training_task import TrainingTask
from models.layers.own_rows import dealt
from models.networks.tower_pre_ranker import PreRanker, TowersPreRanker
from models.networks.two_tower import TwoTower
from models.tracking.tracking import TrackedRun
from models.training import checkpoint, fitting
from models.training.progress import batch_counter

PRE_RANKER = "pre_ranker"
RECALL_AT = (10, 100)


class RetrievalFigures(Summary):
    """`pre_ranker` is None unless prerank.kind is "towers"."""

    two_tower: TowerSummary
    pre_ranker: PreRankerSummary | None = None


def train_retrieval(task: TrainingTask) -> RetrievalFigures:
    """Trains both anew where either is missing: the pre-ranker reads the towers' vectors."""
    known = _finished(task)
    if known is not None:
        return known
    towers = _fit_towers(task)
    pre_ranker = _fit_pre_ranker(task, towers) if task.config.prerank_kind == "towers" else None
    return data_parallel.summary_by_first(lambda: _finish(task, towers, pre_ranker), RetrievalFigures)


def _finished(task: TrainingTask) -> RetrievalFigures | None:
    towers = finished(task, TOWER, TowerSummary)
    if towers is None or not (task.out.model(TOWER) / CALIBRATION).exists():
        return None
    if task.config.prerank_kind != "towers":
        return RetrievalFigures(two_tower=towers)
    pre_ranker = finished(task, PRE_RANKER, PreRankerSummary)
    if pre_ranker is None or not (task.out.model(PRE_RANKER) / CALIBRATION).exists():
        return None
    return RetrievalFigures(two_tower=towers, pre_ranker=pre_ranker)


def build_towers(spec: FeatureSpec, settings: Train) -> TwoTower:
    """Fresh weights come from torch's global generator: seed it first."""
    s = settings
    return TwoTower(spec, s.embedding_dim, s.tower_hidden, s.tower_dim, s.dropout, s.temperature)


def _fit_towers(task: TrainingTask) -> FittedModel[TwoTower]:
    settings, run = task.config.train, _start(task, TOWER)
    torch.manual_seed(task.seed)
    with dealt(*data_parallel.current()):
        towers = build_towers(task.spec, settings)
    carried = CarriedWeights(task, TOWER, lambda spec, config: build_towers(spec, config.train))
    fit = fitting.fit_towers(
        towers, task.examples("train"), task.early_stopping(), settings, task.seed,
        change=_nobody(task) if settings.unknown_ids else None, start=carried, on_epoch=log_epochs(run),
        on_batch=batch_counter(task.on_progress, TOWER, settings.tower_epochs),
        kept=kept_run(task, TOWER),
    )
    data_parallel.by_first(lambda: _save(task, TOWER, towers, run))
    return FittedModel(TOWER, towers, fit, carried.figures)


def _nobody(task: TrainingTask) -> Nobody | None:
    """None where the log has no users."""
    return Nobody.of(task.spec) if task.spec.has_users else None


def _fit_pre_ranker(task: TrainingTask, towers: FittedModel[TwoTower]) -> FittedModel[PreRanker]:
    """Cold where the towers began so: it reads their vectors."""
    settings, run = task.config.train, _start(task, PRE_RANKER)
    torch.manual_seed(task.seed)
    pre_ranker = PreRanker(settings.tower_dim, task.config.prerank.hidden)
    carried = CarriedWeights(task, PRE_RANKER,
                             lambda _, config: PreRanker(config.train.tower_dim, config.prerank.hidden))
    fit = fitting.fit_pre_ranker(
        pre_ranker, towers.network, task.examples("train"), task.early_stopping(), settings, task.seed,
        positions=task.spec.positions, start=None if towers.began_cold else carried, on_epoch=log_epochs(run),
        on_batch=batch_counter(task.on_progress, PRE_RANKER, settings.tower_epochs),
        kept=kept_run(task, PRE_RANKER), negative_rate=task.config.features.negative_rate,
    )
    data_parallel.by_first(lambda: _save(task, PRE_RANKER, pre_ranker, run))
    return FittedModel(PRE_RANKER, pre_ranker.eval(), fit, carried.figures)


def _start(task: TrainingTask, name: str) -> TrackedRun:
    take_summary_away(task, name)
    return start_run(task, name)


def _save(task: TrainingTask, name: str, network: torch.nn.Module, run: TrackedRun) -> None:
    path = task.out.model(name) / WEIGHTS
    checkpoint.save(network, path)
    end_run(task, run, (path,))


def _finish(
    task: TrainingTask, towers: FittedModel[TwoTower], pre_ranker: FittedModel[PreRanker] | None
) -> RetrievalFigures:
    """Measures and calibrates what was trained and writes the summaries."""
    items = retrieval_recall.catalogue(towers.network, [task.examples("train"), task.examples("test")])
    clicked = retrieval_recall.clicks(towers.network, items, task.examples("test"))
    clicks = len(clicked.place)
    first = TowerSummary(
        **dict(towers.figures(digest(task, TOWER))), **dict(_calibrated(task, TOWER, towers.network, ())),
        recall=_tower_recall(task, items, clicked) if clicks else None, catalogue=len(items.ids), clicks=clicks,
        cold=_cold(task, towers.network, items),
    )
    second = None
    if pre_ranker is not None:
        joined = TowersPreRanker(towers.network, pre_ranker.network)
        second = PreRankerSummary(
            **dict(pre_ranker.figures(digest(task, PRE_RANKER))),
            **dict(_calibrated(task, PRE_RANKER, joined, pre_ranker.fit.position_bias)),
            recall=_pre_rank_recall(task, pre_ranker.network, items, clicked) if clicks else None, clicks=clicks,
        )
        summary.write(task.out.model(PRE_RANKER), second)
    summary.write(task.out.model(TOWER), first)
    for name in (TOWER, PRE_RANKER):
        clear_runs(task, name)
    return RetrievalFigures(two_tower=first, pre_ranker=second)


def _calibrated(
    task: TrainingTask, name: str, network: torch.nn.Module, position_bias: Sequence[float]
) -> CalibratedFigures:
    """Saves the model's curve; returns its figures on the test window, of probabilities on the rows that tell them."""
    validation, test = task.examples("validation"), task.examples("test")
    curve = pre_ranker_curve(task.config.train, validation, fitting.predict(network, validation), position_bias)
    save_weights(task.out.model(name) / CALIBRATION, curve.arrays())
    logits, labels, shown = fitting.predict(network, test), test.column(LABEL), position_logit(test, position_bias)
    rows = telling(test, position_bias, np.ones(test.rows, dtype=bool))
    figures = evaluate(logits, labels, None, curve, position_logit=shown, log_draws=test.log_draws(), telling=rows)
    return CalibratedFigures(**{name: getattr(figures, name) for name in CalibratedFigures.model_fields})


def _tower_recall(task: TrainingTask, items: Catalogue, clicked: Clicks) -> dict[str, TowerRecall]:
    ks = sorted({*RECALL_AT, task.config.retrieve.candidates})
    found = retrieval_recall.tower_recall(items, clicked, ks, _device(task))
    return {str(k): TowerRecall(**shares) for k, shares in found.items()}


def _cold(task: TrainingTask, towers: TwoTower, items: Catalogue) -> ColdRecall | None:
    nobody, retrieve = _nobody(task), task.config.retrieve
    if nobody is None or not len(items.ids):
        return None
    with torch.inference_mode():
        return cold_recall(towers, items, task.examples("train"), task.examples("validation"), nobody,
                           retrieve.candidates, retrieve.two_tower)


def _pre_rank_recall(task: TrainingTask, pre_ranker: PreRanker, items: Catalogue, clicked: Clicks) -> PreRankRecall:
    candidates, keep = task.config.retrieve.candidates, task.config.prerank.keep
    shares = retrieval_recall.pre_rank_recall(pre_ranker, items, clicked, candidates, keep, _device(task))
    return PreRankRecall(candidates=candidates, keep=keep, **shares)


def _device(task: TrainingTask) -> torch.device:
    """Where the catalogue is scored: where was trained."""
    return data_parallel.resolve_device(task.config.train.device)
