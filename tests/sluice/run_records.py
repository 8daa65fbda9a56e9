"""Records of a run's jobs with made-up figures, for tests of who reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from contracts.artifacts import Artifacts
from contracts.features.feature_spec import PairModel
from contracts.features.found_crosses import FoundCross
from contracts.summaries import summary
from contracts.summaries.bundle import BundleSummary, ParityFigures
from contracts.summaries.crosses import (
    BoostedTreesFigures,
    CrossesSummary,
    RepresentationFigures,
    VariantFigures,
)
from contracts.summaries.features import ExampleRows, FeatureRows, FeaturesSummary, Ingested
from contracts.summaries.federated import (
    BothWays,
    FederatedFigures,
    FederateSummary,
    LeakCurve,
    RoundFigures,
    ServerAppSummary,
    SettingFigures,
)
from contracts.summaries.leaks import FieldFigures, LeaksSummary, SuspectedField, ValueGroup
from contracts.summaries.pair_rates import GraphFigures, PairRateBytes, PairRatesSummary
from contracts.summaries.prerank import FrontierPoint, PreRankerFigures, PrerankSummary
from contracts.summaries.train import (
    BucketFigures,
    Curves,
    EpochFigures,
    Freshness,
    FreshnessFigures,
    LightgbmSummary,
    RankerSummary,
    ReliabilityCurve,
    RocCurve,
    TrainSummary,
)

PARITY = ParityFigures(rows=256, mismatches=0, max_logit_difference=0.0)


def ranker(**changes: Any) -> RankerSummary:
    epochs = tuple(EpochFigures(epoch=n, train_loss=0.2, validation_loss=0.16 - n / 100, seconds=1.0) for n in (1, 2))
    figures = {
        "auc": 0.7321, "gauc": 0.7, "gauc_users": 5, "gauc_skipped": 1, "ndcg_10": 0.5, "log_loss": 0.14, "ece": 0.01,
        "predicted_over_observed": 1.0, "rows": 100, "positives": 9, "auc_standard_error": 0.01,
        "ece_uncalibrated": 0.02, "validation_auc": 0.72, "position_bias": (0.0,), "seconds": 9.0,
        "rows_per_second": 10.0, "epochs": 2, "best_epoch": 2, "history": epochs,
    }
    return RankerSummary(**figures | changes)


def curves() -> Curves:
    roc = RocCurve(false_positive_rate=(0.0, 1.0), true_positive_rate=(0.0, 1.0))
    bins = ReliabilityCurve(predicted=(0.01, 0.05), observed=(0.011, 0.048), rows=(50, 50))
    return Curves(roc=roc, reliability=bins)


def trained(**changes: Any) -> TrainSummary:
    fresh = FreshnessFigures(auc=0.74, auc_standard_error=0.01, gauc=0.71, log_loss=0.14)
    buckets = {
        model: {"0": BucketFigures(rows=18_971, positives=9, auc=0.6111 + shift),
                "1-10": BucketFigures(rows=7, positives=0)}
        for model, shift in (("pair_rate", 0.0), ("dnn", 0.1))
    }
    figures = {
        "ranker": "dnn", "models": {"popularity": ranker(auc=0.58, history=()), "dnn": ranker()},
        "freshness": Freshness(published=fresh.model_copy(update={"auc": 0.73}), fresh=fresh),
        "co_occurrence": {"city_x_brand_rate": buckets}, "seconds": 60.0,
        "outside": LightgbmSummary(
            name="lightgbm", auc=0.7123, gauc=0.69, validation_auc=0.7, rows=100_000, seconds=4.0),
    }
    return TrainSummary(**figures | changes)


def features(**changes: Any) -> FeaturesSummary:
    examples = {name: ExampleRows(rows=200_000, positives=7_000, days=7, content_hash="c0ffee", written=())
                for name in ("train", "validation", "test")}
    ingested = Ingested(
        rows_in=9, duplicates=0, quarantined=0, reasons={}, events=9, positives=1, days={}, written=())
    figures = {
        "name": "shop", "ingest": ingested, "vocabularies": {}, "crosses": (), "parity_rows": 9, "examples": examples,
        "features": FeatureRows(rows=9, rows_of_day={}, prior_rate=0.1, written=()),
        "seconds": {"ingest": 20.0, "fit": 30.0},
    }
    return FeaturesSummary(**figures | changes)


def leaks(**changes: Any) -> LeaksSummary:
    fields = {name: FieldFigures(auc=auc, standard_error=0.01, present_positive=1.0, present_negative=1.0)
              for name, auc in (("age", 0.55), ("dwell", 0.99))}
    profile = (ValueGroup(value="no value", share=0.9, rate=0.0), ValueGroup(value="3 to 9", share=0.1, rate=0.98))
    suspected = {"dwell": SuspectedField(reasons=("it is a copy",), kinds=("near copy",), profile=profile)}
    return LeaksSummary.model_validate(
        {"rows": 90, "fields": fields, "suspected": suspected, "planted_found": True} | changes)


def crosses(**changes: Any) -> CrossesSummary:
    def variant(auc: float, **more: Any) -> VariantFigures:
        return VariantFigures(
            validation_loss=0.2, validation_auc=0.7, auc=auc, base_ridge=1.0, crosses=1, keys=24, **more)

    figures = {
        "crosses": (FoundCross(name="age_band_x_format", parts=("age_band", "format"), importance=0.93, gain=173.2,
                               support=24),),
        "columns": ("age_band", "format"), "allowed_pairs": 1, "proposed": 9, "split": "time", "history": (),
        "rows_per_second": 10.0, "seconds": 40.0, "phases": {}, "compare_rows": 1000,
        "variants": {"none": variant(0.67), "fives": variant(0.7419, gain=0.06, gain_low=0.05, gain_high=0.07)},
        "representations": {kind: RepresentationFigures(auc=0.7, weights=10)
                            for kind in ("none", "embedding", "product")},
        "lightgbm": BoostedTreesFigures(auc=0.66, validation_auc=0.65),
    }
    return CrossesSummary(**figures | changes)


def pair_rates(**changes: Any) -> PairRatesSummary:
    graph = GraphFigures(nodes=700, edges=23_338, pairs_observed=1, relations=(), rows=9, clicks=1)
    figures = {
        "pairs": (("city", "brand"),), "model": "pcf_gnn", "graph": graph, "seconds": 5.0,
        "bytes": PairRateBytes(own=47_652, table=280_056, dense=397_600), "pair_model": PairModel(head="dot", dim=4),
    }
    return PairRatesSummary(**figures | changes)


def prerank(**changes: Any) -> PrerankSummary:
    def point(cost: float, chosen: bool) -> FrontierPoint:
        return FrontierPoint(
            reg_scale=None if cost > 5 else 0.1, cost=cost, price=cost, kept=("city",), fields_kept=1, recall=0.9,
            recall_error=0.01, auc=0.7, delta={"city": 1.0}, chosen=chosen, us_per_1000=100.0 * cost)

    figures = {
        name: PreRankerFigures(recall=recall, recall_error=0.0, hit_rate=0.4, recall_without_bids=1.0, auc=0.7,
                               us_per_1000=900.0, funnel_ms=8.25)
        for name, recall in (("fscd", 0.9876), ("dot_product", 0.7187), ("full_ranker", 1.0))
    }
    return PrerankSummary.model_validate({
        "kind": "fscd", "item_side": "precomputed", "seed": 1, "fields_kept": 1, "fields_all": 2, "kept": ("city",),
        "cost": 1.0, "price": 1.0, "costs": {"city": 1.0, "junk": 9.0}, "frontier": (point(10.0, False),
                                                                                     point(1.0, True)),
        "dropped": (), "words": ("junk: +0.0001 recall, -90.0% cost",), "digest": "c0ffee", "seconds": 7.0,
    } | figures | changes)


def bundle(**changes: Any) -> BundleSummary:
    figures = {"version": "shop-abc", "files": 9, "ranker": "dnn", "parity": PARITY, "bytes": 10, "seconds": 3.0}
    return BundleSummary(**figures | changes)


def setting(aucs: dict[int, float | None], **changes: Any) -> SettingFigures:
    """`aucs` by round, None where a round was not evaluated."""
    rounds = tuple(
        RoundFigures(round=number, clients=9, union=5, declared=4.0, lost={}, seconds_per_phase={}, abandoned=0,
                     bytes={}, waited=0, seconds=1.0, auc=auc)
        for number, auc in aucs.items())
    figures = {
        "auc": 0.6666, "best_round": 4, "history": rounds, "bytes_per_client_round": 281_234.0,
        "bytes_per_phase": {"train": BothWays(up=1000.0, down=2000.0)}, "bytes_by_formula": 280_000.0,
        "bytes_by_formula_per_phase": {"train": (900.0, 1900.5)}, "held": 2.0, "rounds": len(aucs),
        "seconds_per_round": 1.0, "seconds_per_phase": {"train": 0.25}, "dropouts": {}, "abandoned": 0,
    }
    return SettingFigures(**figures | changes)


def federated() -> FederateSummary:
    leak = LeakCurve(rounds=(1, 4), unions=(0.0, 0.0125), sums=(0.0, 0.25), both=(0.0, 0.3125))
    settings = {"cpp2": setting({1: None, 2: 0.61, 4: 0.6666}, leak=leak, single_holder_seen=0.0831),
                "central": setting({1: None, 4: 0.7}, bytes_per_phase={}, bytes_by_formula_per_phase={})}
    figures = FederatedFigures(
        auc={"cpp2": 0.6666, "central": 0.7}, bytes_per_client_round={"cpp2": 281_234.0},
        bytes_by_formula={"cpp2": 280_000.0}, epsilon={"cpp2": 2.708}, epsilon_composed={"cpp2": 221.5},
        epsilon_noise={"cpp2": 7.25}, single_holder_seen={"cpp2": 0.0831}, proven={"cpp2": 0.3125},
        warnings=("cpp2: a row's only holder is seen",), auc_validation={"cpp2": 0.66},
        kept={"cpp2": 0.88, "central": 1.0},
        seconds_per_round=1.0, dropouts=0, served="cpp2")
    return FederateSummary(federated=figures, clients=9, settings=settings, seconds=9.0)


def deployed(**changes: Any) -> ServerAppSummary:
    figures = {
        "rounds": 4, "history": (), "bytes_per_client_round": 2048.0, "bytes_per_phase": {}, "best_round": 3,
        "auc_validation": 0.6543, "predicted_over_observed": 1.0321, "epsilon": 2.708, "epsilon_noise": 7.25,
        "single_holder_seen": 0.0831, "warnings": ("cpp2: a row's only holder is seen",)}
    return ServerAppSummary(**figures | changes)


def write_jobs(folder: Path, *names: str) -> Artifacts:
    """The summaries that these jobs leave, and no summary of a whole run."""
    out = Artifacts(folder)
    jobs: dict[str, tuple[Path, summary.Summary]] = {
        "features": (out.features, features()), "leaks": (out.leaks, leaks()), "crosses": (out.crosses, crosses()),
        "pretrain": (out.pair_rates, pair_rates()), "train": (out.out / "models", trained()),
        "prerank": (out.prerank, prerank()), "bundle": (out.out / "bundle_job", bundle()),
        "federate": (out.out / "federated", federated()),
    }
    for name in names:
        summary.write(*jobs[name])
    return out
