"""Figures of a run as tables on the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

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
LARGE = 1000


def figure(value: Any) -> str:
    """Four digits behind the point, none from a thousand on; nothing made up for what is missing."""
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= LARGE else f"{value:.4f}"


def print_models(models: dict[str, dict[str, Any]], console: Console) -> None:
    shown = [key for key in MODEL_COLUMNS if any(key in figures for figures in models.values())]
    table = Table("model", *(MODEL_COLUMNS[key] for key in shown), title="test window")
    for name, figures in models.items():
        table.add_row(name, *(figure(figures.get(key)) for key in shown))
    console.print(table)


def print_pairs(title: str, figures: dict[str, Any], console: Console) -> None:
    """Nested figures as rows `a.b.c  value`."""
    table = Table("figure", "value", title=title)
    for name, value in _flat(figures):
        table.add_row(name, figure(value))
    console.print(table)


def _flat(figures: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    rows: list[tuple[str, Any]] = []
    for name, value in figures.items():
        rows += _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else [(prefix + name, value)]
    return rows


def print_leaks(found: dict[str, Any], console: Console) -> None:
    """A warning per suspected field, or why none can be suspected; nothing where all is well."""
    for name, entry in found["suspected"].items():
        for reason in entry["reasons"]:
            console.print(f"warning: field {name!r} may leak the label: {reason}", highlight=False, markup=False)
    if "skipped" in found:
        console.print(f"leak check left out: {found['skipped']}", highlight=False, markup=False)
    elif not found["planted_found"]:
        console.print("warning: the leak check did not find the leak it planted; the rows are too few to find others")


def print_crosses(figures: dict[str, Any], console: Console) -> None:
    """The crosses found, then what every set of crosses is worth to the same consumer."""
    found = Table("cross", "gain, nats", "importance", "keys", title="crosses found")
    for cross in figures["crosses"]:
        name, gain = " x ".join(cross["parts"]), f"{cross['gain']:.1f}"
        found.add_row(name, gain, figure(cross["importance"]), str(cross["support"]))
    console.print(found)
    if "variants" in figures:
        arms = Table("crosses", "AUC", "gain", "95% interval", "keys", title="logistic regression, test window")
        for name, arm in figures["variants"].items():
            interval = f"{arm['gain_low']:+.4f} to {arm['gain_high']:+.4f}" if "gain" in arm else "-"
            arms.add_row(name, figure(arm["auc"]), figure(arm.get("gain")), interval, str(arm["keys"]))
        if figures.get("lightgbm"):
            arms.add_row("(LightGBM, raw columns)", figure(figures["lightgbm"]["auc"]), "-", "-", "-")
        console.print(arms)


def print_prerank(figures: dict[str, Any], console: Console) -> None:
    """The frontier, the three pre-rankers side by side, and why fields went."""
    frontier = Table("penalty", "fields", "cost", "us per 1,000", "recall", "hit rate", "AUC", "", title="frontier")
    for point in figures["frontier"]:
        penalty = f"{point['reg_scale']:.2g}" if "reg_scale" in point else "none"
        values = [point.get(key) for key in ("cost", "us_per_1000", "recall", "hit_rate", "auc")]
        mark = "chosen" if point["chosen"] else ""
        frontier.add_row(penalty, str(point["fields_kept"]), *(figure(value) for value in values), mark)
    console.print(frontier)
    keys = ("recall", "hit_rate", "auc", "us_per_1000", "funnel_ms")
    compared = Table("pre-ranker", *keys, title="test window")
    for name in ("fscd", "dot_product", "full_ranker"):
        compared.add_row(name, *(figure(figures[name].get(key)) for key in keys))
    console.print(compared)
    for sentence in figures["words"]:
        console.print(f"  {sentence}", highlight=False)


def print_federated(figures: dict[str, Any], console: Console) -> None:
    """One row per setting: quality, bytes on the wire of a client and round, what its answers give away."""
    table = Table("setting", "test AUC", "KiB a client and round", "epsilon a row", "composed", "share kept",
                  "epsilon of the noise", title="federated")
    for name, auc in figures["auc"].items():
        size = figures["bytes_per_client_round"].get(name)
        spent = ("-" if name not in figures[key] else "unbounded" if figures[key][name] is None else
                 figure(figures[key][name]) for key in ("epsilon", "epsilon_composed"))
        table.add_row(name, figure(auc), figure(size and size / 1024), *spent, figure(figures["kept"].get(name)),
                      figure(figures["epsilon_noise"].get(name)))
    console.print(table)
