"""Figures of a run as tables on the terminal."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from contracts.summaries.crosses import CrossesSummary
from contracts.summaries.federated import FederatedFigures, ServerAppSummary
from contracts.summaries.leaks import LeaksSummary
from contracts.summaries.prerank import PrerankSummary
from contracts.summaries.train import ChannelsSummary, RankerSummary, TrainSummary, TuneSummary

MODEL_COLUMNS = {
    "auc": "AUC",
    "gauc": "GAUC",
    "log_loss": "log loss",
    "ece": "ECE",
    "predicted_over_observed": "pred/obs",
    "oracle_auc": "oracle AUC",
    "share_of_oracle": "share of oracle",
    "seconds": "seconds",
}
PRE_RANKER_COLUMNS = ("recall", "hit_rate", "auc", "us_per_1000", "funnel_ms")
QUOTAS_BY = {"clicks": "validation's clicks", "slates": "what the ranker would show in validation"}
LARGE = 1000


def figure(value: object) -> str:
    """Four digits behind the point, two from ten on, one from a hundred, none from a thousand; nothing made up for what
    is missing."""
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    if abs(value) >= LARGE:
        return f"{value:,.0f}"
    return f"{value:.{1 if abs(value) >= 100 else 2 if abs(value) >= 10 else 4}f}"


def print_models(models: Mapping[str, RankerSummary], console: Console, reason: str | None = None) -> None:
    """One row per model, with the columns that any has; AUC of known and new users and items; why one is served."""
    rows = {name: [getattr(figures, key, None) for key in MODEL_COLUMNS] for name, figures in models.items()}
    shown = [place for place in range(len(MODEL_COLUMNS)) if any(row[place] is not None for row in rows.values())]
    titles = list(MODEL_COLUMNS.values())
    table = Table("model", *(titles[place] for place in shown), title="test window")
    for name, row in rows.items():
        table.add_row(name, *(figure(row[place]) for place in shown))
    console.print(table)
    slices = novelty_slices(models)
    if slices:
        titles = [f"{name}, {rows:,} rows" for name, rows in slices.items()]
        for title, column in novelty_figures(models).items():
            split = Table("model", *titles, title=f"{title} by who is known")
            for name, figures in models.items():
                split.add_row(name, *(figure(getattr(figures.by_novelty[part], column)) for part in slices))
            console.print(split)
    if reason:
        console.print(reason, highlight=False, markup=False)


def print_cold_starts(made: TrainSummary, console: Console) -> None:
    """A sentence for each network that could not start from the parent's."""
    for model in (*made.models.values(), made.two_tower, made.pre_ranker):
        if model is not None and model.warm_start is not None and model.warm_start.cold:
            console.print(model.warm_start.cold, highlight=False, markup=False)


def print_channels(found: ChannelsSummary, console: Console) -> None:
    """One row per channel of retrieval and one of their mix: quota, and recall of the test window's clicks."""
    table = Table("channel", "quota", *(f"recall at {k}" for k in found.recall),
                  title=f"retrieval: {found.test_clicks:,} clicks of the test window",
                  caption=f"quotas chosen by {QUOTAS_BY[found.chosen_by]}")
    for name, quota in found.quotas.items():
        table.add_row(name, str(quota), *(figure(at.alone[name]) for at in found.recall.values()))
    table.add_row("mixed", "", *(figure(at.mixed) for at in found.recall.values()))
    console.print(table)
    widest = max(found.recall, key=int)
    by_age = found.recall[widest].by_age
    if len(by_age) > 1:
        ages = Table("age", "clicks", *found.quotas, "mixed", title=f"recall at {widest} by age of the item")
        for age, at in by_age.items():
            ages.add_row(age, f"{at.clicks:,}", *(figure(at.alone[name]) for name in found.quotas), figure(at.mixed))
        console.print(ages)


def print_tuning(found: TuneSummary, console: Console) -> None:
    """The settings of the best trial beside the configured ones, what mattered, and what became of them."""
    mattered = found.importances
    names = sorted(found.best.settings, key=lambda name: (-mattered.get(name, 0.0), name))
    configured = (trial.settings for trial in found.trials if trial.configured and trial.model == found.best.model)
    before = next(configured, {})
    table = Table("setting", "configured", "best", "mattered", title=f"{found.best.model}, {len(found.trials)} trials")
    for name in names:
        table.add_row(name, setting(before.get(name)), setting(found.best.settings[name]),
                      f"{mattered[name]:.0%}" if name in mattered else "-")
    console.print(table)
    console.print(found.reason, highlight=False, markup=False)


def setting(value: object) -> str:
    """A value of the configuration, short."""
    if value is None:
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(list(value) if isinstance(value, tuple) else value)


def novelty_slices(models: Mapping[str, RankerSummary]) -> dict[str, int]:
    """Slice -> its rows of the test window; none where nobody and nothing is new, or a model was not split."""
    found = [getattr(figures, "by_novelty", {}) for figures in models.values()]
    if not found or not all(found) or not any(part.rows for name, part in found[0].items() if name.startswith("new")):
        return {}
    return {name: part.rows for name, part in found[0].items()}


def novelty_figures(models: Mapping[str, RankerSummary]) -> dict[str, str]:
    """Title -> name of each figure that slices have; GAUC where the log has users."""
    parts = [part for figures in models.values() for part in getattr(figures, "by_novelty", {}).values()]
    return {"AUC": "auc", **({"GAUC": "gauc"} if any(part.gauc is not None for part in parts) else {})}


def print_pairs(title: str, figures: Mapping[str, object], console: Console) -> None:
    """Nested figures as rows `a.b.c  value`."""
    table = Table("figure", "value", title=title)
    for name, value in _flat(figures):
        table.add_row(name, figure(value))
    console.print(table)


def _flat(figures: Mapping[str, object], prefix: str = "") -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = []
    for name, value in figures.items():
        rows += _flat(value, f"{prefix}{name}.") if isinstance(value, Mapping) else [(prefix + name, value)]
    return rows


def print_leaks(leaks: LeaksSummary, console: Console) -> None:
    """A warning per suspected field, or why none can be suspected; nothing where all is well."""
    for name, entry in leaks.suspected.items():
        for reason in entry.reasons:
            console.print(f"warning: field {name!r} may leak the label: {reason}", highlight=False, markup=False)
    if leaks.skipped is not None:
        console.print(f"leak check left out: {leaks.skipped}", highlight=False, markup=False)
    elif not leaks.planted_found:
        console.print("warning: the leak check did not find the leak it planted; the rows are too few to find others")


def print_crosses(searched: CrossesSummary, console: Console) -> None:
    """The crosses found, then what every set of crosses is worth to the same downstream model."""
    kept = Table("cross", "gain, nats", "importance", "keys", title="crosses found")
    for cross in searched.crosses:
        kept.add_row(" x ".join(cross.parts), f"{cross.gain:.1f}", figure(cross.importance), str(cross.support))
    console.print(kept)
    if searched.variants:
        compared = Table("crosses", "AUC", "gain", "95% interval", "keys", title="logistic regression, test window")
        for name, variant in searched.variants.items():
            interval = "-" if variant.gain is None else f"{variant.gain_low:+.4f} to {variant.gain_high:+.4f}"
            compared.add_row(name, figure(variant.auc), figure(variant.gain), interval, str(variant.keys))
        if searched.lightgbm:
            compared.add_row("(LightGBM, raw columns)", figure(searched.lightgbm.auc), "-", "-", "-")
        console.print(compared)


def print_prerank(prerank: PrerankSummary, console: Console) -> None:
    """The frontier, the three pre-rankers side by side, and why fields went."""
    frontier = Table("penalty", "fields", "cost", "us per 1,000", "recall", "hit rate", "AUC", "", title="frontier")
    for point in prerank.frontier:
        penalty = "none" if point.reg_scale is None else f"{point.reg_scale:.2g}"
        values = (point.cost, point.us_per_1000, point.recall, point.hit_rate, point.auc)
        mark = "chosen" if point.chosen else ""
        frontier.add_row(penalty, str(point.fields_kept), *(figure(value) for value in values), mark)
    console.print(frontier)
    compared = Table("pre-ranker", *PRE_RANKER_COLUMNS, title="test window")
    pre_rankers = {"fscd": prerank.fscd, "dot_product": prerank.dot_product, "full_ranker": prerank.full_ranker}
    for name, figures in pre_rankers.items():
        compared.add_row(name, *(figure(getattr(figures, key)) for key in PRE_RANKER_COLUMNS))
    console.print(compared)
    for sentence in prerank.words:
        console.print(f"  {sentence}", highlight=False)


def print_federated(federated: FederatedFigures, console: Console) -> None:
    """One row per setting: quality, bytes on the wire of a client and round, what its answers give away."""
    table = Table("setting", "test AUC", "KiB a client and round", "epsilon a row", "composed", "share kept",
                  "epsilon of the noise", "only holder seen", "held rows proven", title="federated")
    for name, auc in federated.auc.items():
        size = federated.bytes_per_client_round.get(name)
        spent = [_epsilon(name, epsilons) for epsilons in (federated.epsilon, federated.epsilon_composed)]
        table.add_row(name, figure(auc), figure(size and size / 1024), *spent, figure(federated.kept.get(name)),
                      figure(federated.epsilon_noise.get(name)), figure(federated.single_holder_seen.get(name)),
                      figure(federated.proven.get(name)))
    console.print(table)
    for sentence in federated.warnings:
        console.print(f"  {sentence}", highlight=False)


def print_deployed(setting: str, led: ServerAppSummary, console: Console) -> None:
    """What the rounds of a deployment came to, and what they say of a client."""
    table = Table("setting", "rounds", "best round", "AUC of later rows", "predicted / observed",
                  "KiB a client and round", "epsilon a row", "epsilon of the noise", "only holder seen",
                  title="deployed")
    table.add_row(setting, str(led.rounds), str(led.best_round), figure(led.auc_validation),
                  figure(led.predicted_over_observed), figure(led.bytes_per_client_round / 1024),
                  _epsilon(setting, {setting: led.epsilon}), figure(led.epsilon_noise), figure(led.single_holder_seen))
    console.print(table)
    for sentence in led.warnings:
        console.print(f"  {sentence}", highlight=False)


def _epsilon(name: str, epsilons: Mapping[str, float | None]) -> str:
    """None in the figures is no bound; a setting that is not there spends nothing."""
    if name not in epsilons:
        return "-"
    return "unbounded" if epsilons[name] is None else figure(epsilons[name])
