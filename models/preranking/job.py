"""The pre-ranking job: candidates in, frontier, chosen network and comparison out.

    OUT/models/fscd/weights.safetensors    the chosen network, all shapes as trained, dropped fields masked

The choice is made on the validation window; the test window is read once, for the figures of the chosen point.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from torch import nn

from contracts.artifacts import CALIBRATION, LABEL, ROW, TEST_LOGITS, TEST_ROWS, WEIGHTS, Artifacts
from contracts.bundle.bundle import load_array, load_weights, save_weights
from contracts.bundle.candidate_lists import CandidateItems, CandidateLists
from contracts.config.config import Config
from contracts.features.feature_spec import FeatureSpec
from contracts.features.field_costs import MeasuredCosts, costs
from contracts.summaries.prerank import FrontierPoint, PreRankChoice, PreRankerFigures
from models.evaluation.calibration import Calibration
from models.evaluation.metrics import auc
from models.evaluation.slot_calibration import pre_ranker_curve
from models.examples.batches import ExampleSet
from models.examples.in_memory import ArrayExamples, rows_of
from models.networks.two_tower import TwoTower
from models.preranking.candidate_batches import score
from models.preranking.dropped_fields import dropped
from models.preranking.fscd import Fscd
from models.preranking.fscd_training import Sources
from models.preranking.quality import evaluate
from models.preranking.sweep import OnStep, Point, Task, choose, finish, sweep
from models.training import checkpoint, fitting

FSCD = "fscd"
IMPRESSIONS, AUC_ROWS = 200_000, 10_000


@dataclass(frozen=True)
class Outcome:
    """`figures` are those of the summary, without times; `points` in the order of `figures.frontier`."""

    figures: PreRankChoice
    points: list[Point]
    network: Fscd


def make_task(
    config: Config, out: Artifacts, spec: FeatureSpec, measured: MeasuredCosts | None, seed: int, progress: OnStep
) -> Task:
    """What the sweep needs, from OUT/candidates and the examples."""
    examples = ExampleSet(out.examples("train"), spec)
    impressions = None
    if config.prerank.click_loss_weight:
        impressions = ArrayExamples(examples.folder, spec, rows_of(examples, spec, IMPRESSIONS, seed))
    sources = Sources(CandidateItems.load(out.candidates), CandidateLists.load(out.candidates / "train"), impressions)
    auction = spec.has_bid and config.rerank.kind in ("auto", "auction")
    return Task(
        spec=spec, sources=sources, evaluated=CandidateLists.load(out.candidates / "validation"),
        settings=config.prerank, costs=costs(spec, config.prerank, measured, config.retrieve.candidates),
        measured=measured, auction=auction, seed=seed, progress=progress, pair_rates=out.pair_rates,
    )


def train_pre_ranker(task: Task, config: Config, out: Artifacts, ranker: str) -> Outcome:
    """Sweeps, chooses, trains to the end, compares on the test window and writes the weights."""
    outcome, curve = outcome_of(task, config, out, ranker)
    checkpoint.save(outcome.network, out.model(FSCD) / WEIGHTS)
    save_weights(out.model(FSCD) / CALIBRATION, curve.arrays())
    return outcome


def outcome_of(task: Task, config: Config, out: Artifacts, ranker: str) -> tuple[Outcome, Calibration]:
    """All of the job but the writing."""
    points = sweep(task)
    chosen = choose(points, task.settings)
    network, position_bias = finish(task, chosen)
    validation = ExampleSet(out.examples("validation"), task.spec)
    curve = pre_ranker_curve(config.train, validation, fitting.predict(network, validation), position_bias)
    shown = ArrayExamples(validation.folder, task.spec, rows_of(validation, task.spec, AUC_ROWS, task.seed))
    lost = tuple(dropped(task, points[0], chosen.kept))
    figures = PreRankChoice(
        kind=config.prerank_kind, item_side=config.prerank.item_side, seed=task.seed, fields_kept=len(chosen.kept),
        fields_all=len(network.fields), kept=tuple(chosen.kept), cost=chosen.cost, price=chosen.price,
        costs=dict(task.costs), frontier=tuple(_frontier_point(point, shown, chosen) for point in points), dropped=lost,
        words=tuple(field.sentence for field in lost), **compare(task, config, out, network, curve, ranker),
    )
    return Outcome(figures, points, network), curve


def _frontier_point(point: Point, shown: ArrayExamples, chosen: Point) -> FrontierPoint:
    logits, quality = fitting.predict(point.network, shown), point.quality
    return FrontierPoint(
        reg_scale=point.reg_scale, cost=point.cost, price=point.price, kept=tuple(point.kept),
        fields_kept=len(point.kept), recall=quality.recall, recall_error=quality.recall_error,
        hit_rate=quality.hit_rate, auc=auc(shown.column(LABEL), logits), delta=point.delta, chosen=point is chosen,
    )


def _log_odds(logits: np.ndarray, curve: Calibration) -> np.ndarray:
    probabilities = np.clip(curve.apply(logits), 1e-12, 1.0 - 1e-12)
    return np.log(probabilities) - np.log1p(-probabilities)


def compare(
    task: Task, config: Config, out: Artifacts, network: Fscd, curve: Calibration, ranker: str
) -> dict[str, PreRankerFigures]:
    """Recall, hit rate and AUC of the test window for the network, the dot product and the ranker on everything.

    An auction weighs calibrated probabilities, each pre-ranker's by its own curve.
    """
    test = CandidateLists.load(out.candidates / "test")
    examples = ExampleSet(out.examples("test"), task.spec)
    labels, items = examples.column(LABEL), task.sources.items
    scores = {
        FSCD: score(network, items, test), "dot_product": test.tower / config.train.temperature,
        "full_ranker": test.teacher,
    }
    aucs = {
        FSCD: auc(labels, fitting.predict(network, examples)),
        "dot_product": auc(labels, fitting.predict(_towers(config, out, task.spec), examples)),
        "full_ranker": auc(labels, _ranker_logits(out, ranker, examples)),
    }
    curves = {FSCD: curve, **{name: Calibration.from_arrays(load_weights(out.model(model) / CALIBRATION))
                              for name, model in (("dot_product", "two_tower"), ("full_ranker", ranker))}}
    ranked = replace(test, teacher=_log_odds(test.teacher, curves["full_ranker"]))
    limits = {"recall_at": task.settings.recall_at, "keep": task.settings.keep}
    found = {}
    for name, values in scores.items():
        quality = evaluate(_log_odds(values, curves[name]), items, ranked, auction=task.auction, **limits)
        plain = evaluate(values, items, test, auction=False, **limits)
        found[name] = PreRankerFigures(
            recall=quality.recall, recall_error=quality.recall_error, hit_rate=quality.hit_rate,
            recall_without_bids=plain.recall, hit_rate_without_bids=plain.hit_rate, auc=aucs[name],
        )
    return found


def _towers(config: Config, out: Artifacts, spec: FeatureSpec) -> nn.Module:
    s = config.train
    towers = TwoTower(spec, s.embedding_dim, s.tower_hidden, s.tower_dim, s.dropout, s.temperature)
    checkpoint.load(towers, out.model("two_tower") / WEIGHTS)
    return towers


def _ranker_logits(out: Artifacts, ranker: str, examples: ExampleSet) -> np.ndarray:
    """The ranker's test logits, brought into the order of the examples."""
    rows, logits = load_array(out.model(ranker) / TEST_ROWS), load_array(out.model(ranker) / TEST_LOGITS)
    order = np.argsort(rows)
    return logits[order[np.searchsorted(rows, examples.column(ROW), sorter=order)]]


