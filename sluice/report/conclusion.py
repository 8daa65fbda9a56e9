"""What a run comes to, in a few sentences: which model is served, by how much, against which trivial one, what next."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from contracts.errors import BundleError
from contracts.summaries.leaks import LeaksSummary
from contracts.summaries.run import RunSummary
from contracts.summaries.train import RankerSummary
from serving.bundle.feature_store import FeatureStore
from serving.bundle.loaded_bundle import TABLES

TRIVIAL = ("popularity", "logistic_regression")  # by how little they know
CHANCE = 0.5
TOO_GOOD = 0.999  # validation AUC that no honest log of what people do allows


def conclusion(run: RunSummary, config: str, out: str) -> list[str]:
    """Sentences on the test window, and commands to go on with; none without models. `config` and `out` as given."""
    models = run.models or {}
    if run.ranker is None or run.ranker not in models:
        return []
    warning = too_good(models, run.ranker, run.leaks)
    judged = run.pretrain and run.pretrain.judgement
    return [*([warning] if warning else []), _won(models, run.ranker), *([judged.sentence] if judged else []),
            *_next(run, models[run.ranker], models, config, out)]


def too_good(models: Mapping[str, RankerSummary], ranker: str | None, leaks: LeaksSummary | None) -> str | None:
    """A warning where the served model is hardly ever wrong on validation; with the field that says most alone."""
    if ranker is None or ranker not in models or models[ranker].validation_auc < TOO_GOOD:
        return None
    told = f"WARNING: {ranker} has a validation AUC of {models[ranker].validation_auc:.4f}, too good to be true"
    cure = "take out what is known only after the event, and run again, before you serve it"
    if leaks is None or not leaks.fields:
        return f"{told}: a field knows the label; {cure}."
    name = max(leaks.fields, key=lambda field: leaks.fields[field].auc)
    return (f"{told}: a field knows the label. Look first at {name!r}, which alone has {leaks.fields[name].auc:.4f}; "
            f"{cure}.")


def _won(models: Mapping[str, RankerSummary], ranker: str) -> str:
    best = models[ranker]
    beside = [f"{_difference(best, models[name])} on {name.replace('_', ' ')}'s {models[name].auc:.4f}"
              for name in TRIVIAL if name in models and name != ranker]
    told = f"Test window: {ranker} has AUC {best.auc:.4f} ± {best.auc_standard_error:.4f}"
    return f"{told}, {', '.join(beside)}." if beside else f"{told}; {TRIVIAL[0]} is served, nothing gains on it."


def _difference(best: RankerSummary, other: RankerSummary) -> str:
    return f"{best.auc - other.auc:+.4f}"


def _next(
    run: RunSummary, best: RankerSummary, models: Mapping[str, RankerSummary], config: str, out: str
) -> Iterator[str]:
    if run.leaks is not None and run.leaks.suspected:
        yield f"First look at what may know the label: {', '.join(run.leaks.suspected)} (leak check, in the report)."
    if best.auc - CHANCE < 2 * best.auc_standard_error:
        yield "It knows no more than chance: is the label what you mean, and are the fields known before it?"
    gaining = [name for name, model in models.items() if model.best_epoch == model.epochs > 1]
    if gaining:
        yield (f"Still gaining in the last epoch: {', '.join(gaining)}; train.epochs above "
               f"{max(models[name].epochs for name in gaining)} may be worth its time.")
    if best.validation_auc - best.auc > 3 * best.auc_standard_error:
        yield (f"Validation has {best.validation_auc:.4f}: the test window is unlike it; look at AUC by who is known, "
               "and at what changed in time.")
    yield (f"Next: sluice report {out} (plots, intervals); sluice tune {config} --out {out} --budget 10m (settings); "
           "LightGBM beside it with train.lightgbm_rows = 100000, rival crosses with crosses.compare_rows = 50000.")
    if run.skipped is None or "serving" not in run.skipped:
        yield f"To ask it: sluice serve {out}/bundle, then sluice rank --user {_a_user(Path(out) / 'bundle')}"


def _a_user(bundle: Path) -> str:
    """One that the bundle knows, as a shell takes it; where it knows none, as of a log without users, any will do."""
    try:
        known = FeatureStore.load(bundle / TABLES, "users")
    except BundleError:
        return "U"
    return shlex.quote(known.key(0)) if len(known) else "anybody"
