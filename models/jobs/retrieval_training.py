"""The two towers and, where it is wanted, their pre-ranker from settings to files, with the clicks each lets through.

Saved under models/two_tower and models/pre_ranker, restartable as the rankers are. The pre-ranker is calibrated on the
same half of the validation window as they are: where no time is left to rank, its probabilities set the prices.
"""

from __future__ import annotations

from typing import Any

import torch

from contracts import summary
from contracts.artifacts import CALIBRATION, LABEL, WEIGHTS
from contracts.bundle.bundle import save_weights
from contracts.config.training import Train
from contracts.features.feature_spec import SPEC_FILE, FeatureSpec
from models.evaluation import retrieval_recall
from models.evaluation.evaluate import evaluate
from models.evaluation.retrieval_recall import Catalogue, Clicks
from models.jobs.ranker_training import Job, calibrate, position_logit
from models.networks.tower_pre_ranker import PreRanker, TowersPreRanker
from models.networks.two_tower import TwoTower
from models.tracking.tracking import Run
from models.training import checkpoint, data_parallel
from models.training import loop as training_loop

TOWER, PRE_RANKER = "two_tower", "pre_ranker"
RECALL_AT = (10, 100)
CALIBRATED = ("auc", "log_loss", "ece", "predicted_over_observed")


def train_retrieval(job: Job) -> dict[str, dict[str, Any] | None]:
    """{"two_tower": figures, "pre_ranker": figures}, the second None unless prerank.kind is "towers".

    Recalls are None when no test click is on a known item.
    """
    wanted = (TOWER, PRE_RANKER) if job.config.prerank_kind == "towers" else (TOWER,)
    known = {name: job.done(name) for name in wanted}
    if all(known.values()) and all((job.out.model(name) / CALIBRATION).exists() for name in wanted):
        return {PRE_RANKER: None, **known}
    towers, tower_fit, warm = _fit_towers(job)
    second = _fit_pre_ranker(job, towers) if PRE_RANKER in wanted else None
    return data_parallel.by_first(lambda: _finish(job, towers, tower_fit, second, warm))


def _finish(
    job: Job, towers: TwoTower, tower_fit: training_loop.FitResult,
    second: tuple[PreRanker, training_loop.FitResult] | None, warm: dict[str, Any],
) -> dict[str, dict[str, Any] | None]:
    """Measures and calibrates what was trained and writes the summaries."""
    items = retrieval_recall.catalogue(towers, [job.examples("train"), job.examples("test")])
    clicked = retrieval_recall.clicks(towers, items, job.examples("test"))
    found = {
        TOWER: {**_figures(tower_fit), **_calibrate(job, TOWER, towers, []),
                "recall": _tower_recall(job, items, clicked), "catalogue": len(items.ids), "warm_start": warm},
    }
    if second is not None:
        network, fitted = second
        calibrated = _calibrate(job, PRE_RANKER, TowersPreRanker(towers, network), fitted.position_bias)
        found[PRE_RANKER] = {**_figures(fitted), **calibrated,
                             "recall": _pre_rank_recall(job, network, items, clicked)}
    for name, figures in found.items():
        figures |= {"clicks": len(clicked.place), "digest": job.digest(name)}
        summary.write(job.out.model(name), figures)
    return {PRE_RANKER: None, **found}


def _fit_towers(job: Job) -> tuple[TwoTower, training_loop.FitResult, dict[str, Any]]:
    s, run = job.config.train, job.start(TOWER)
    torch.manual_seed(job.seed)
    towers = build_towers(job.spec, s)
    warm = job.warm(TOWER, lambda spec, config: build_towers(spec, config.train))
    fitted = training_loop.fit_towers(
        towers, job.examples("train"), job.early_stopping(), s, job.seed,
        start=warm, on_epoch=_epoch(run), on_batch=job.batch_counter(TOWER, s.tower_epochs),
    )
    data_parallel.by_first(lambda: _save(job, TOWER, towers, run))
    return towers, fitted, warm.figures


def build_towers(spec: FeatureSpec, settings: Train) -> TwoTower:
    s = settings
    return TwoTower(spec, s.embedding_dim, s.tower_hidden, s.tower_dim, s.dropout, s.temperature)


def _fit_pre_ranker(job: Job, towers: TwoTower) -> tuple[PreRanker, training_loop.FitResult]:
    s, run = job.config.train, job.start(PRE_RANKER)
    torch.manual_seed(job.seed)
    pre_ranker = PreRanker(s.tower_dim, job.config.prerank.hidden)
    warm = job.warm(PRE_RANKER, lambda _, config: PreRanker(config.train.tower_dim, config.prerank.hidden))
    fitted = training_loop.fit_pre_ranker(
        pre_ranker, towers, job.examples("train"), job.early_stopping(), s, job.seed, positions=job.spec.positions,
        start=warm, on_epoch=_epoch(run), on_batch=job.batch_counter(PRE_RANKER, s.epochs),
    )
    data_parallel.by_first(lambda: _save(job, PRE_RANKER, pre_ranker, run))
    return pre_ranker.eval(), fitted


def _calibrate(job: Job, name: str, network: torch.nn.Module, position_bias: list[float]) -> dict[str, Any]:
    """Saves the model's curve; its figures on the test window."""
    curve, _ = calibrate(job, network, position_bias)
    save_weights(job.out.model(name) / CALIBRATION, curve.arrays())
    test = job.examples("test")
    shown = position_logit(test, position_bias)
    found = evaluate(training_loop.predict(network, test), test.column(LABEL), None, curve, position_logit=shown)
    return {figure: found[figure] for figure in CALIBRATED}


def _epoch(run: Run) -> training_loop.OnEpoch:
    return lambda entry: run.metrics({name: value for name, value in entry.items() if name != "epoch"}, entry["epoch"])


def _save(job: Job, name: str, network: torch.nn.Module, run: Run) -> None:
    path = job.out.model(name) / WEIGHTS
    checkpoint.save(network, path)
    run.artifact(path)
    run.artifact(job.out.encoding / SPEC_FILE)
    run.end()


def _figures(fitted: training_loop.FitResult) -> dict[str, Any]:
    return {"seconds": fitted.seconds, "rows_per_second": fitted.rows_per_second, "epochs": len(fitted.history),
            "best_epoch": fitted.best_epoch, "history": fitted.history}


def _tower_recall(job: Job, items: Catalogue, clicked: Clicks) -> dict[str, Any] | None:
    if not len(clicked.place):
        return None
    ks = sorted({*RECALL_AT, job.config.retrieve.candidates})
    return {str(k): shares for k, shares in retrieval_recall.tower_recall(items, clicked, ks).items()}


def _pre_rank_recall(job: Job, pre_ranker: PreRanker, items: Catalogue, clicked: Clicks) -> dict[str, Any] | None:
    if not len(clicked.place):
        return None
    candidates, keep = job.config.retrieve.candidates, job.config.prerank.keep
    shares = retrieval_recall.pre_rank_recall(pre_ranker, items, clicked, candidates, keep)
    return {"candidates": candidates, "keep": keep, **shares}
