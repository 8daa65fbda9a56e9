"""`sluice report DIR`: one HTML page that needs nothing but itself, from the run's summaries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from contracts import summary
from contracts.bundle.bundle import load_array
from contracts.errors import DataError
from contracts.summaries.summary import read
from contracts.summaries.train import RankerSummary
from sluice.report.tables import MODEL_COLUMNS, figure


def write_report(folder: Path) -> Path:
    """Writes DIR/report.html. Raises DataError where DIR holds no run."""
    from jinja2 import Environment, PackageLoader

    run = summary.read(folder)
    if not run:
        raise DataError(f"{folder} has no {summary.FILE}; give the --out folder of a finished run or demo")
    environment = Environment(
        loader=PackageLoader("sluice.report", "."), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["figure"] = figure
    page = environment.get_template("report.html").render(
        run=run,
        columns=MODEL_COLUMNS,
        plots=plots(run, _ranker_curves(folder, run)),
        features=run.get("features", {}),
        leaks=run.get("leaks", {}),
        leak_plots=_leak_plots(run.get("leaks", {})),
        crosses=run.get("crosses"),
        prerank=run.get("prerank"),
        heat_maps=_heat_maps(folder, run.get("crosses")),
    )
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    return path


def _leak_plots(leaks: dict[str, Any]) -> dict[str, str]:
    """The picture of each suspected field, and one of all fields under ""."""
    from sluice.report import plots as report_plots

    suspected = leaks.get("suspected", {})
    pictures = {name: report_plots.value_rates(entry.get("profile", [])) for name, entry in suspected.items()}
    return {"": report_plots.field_bars(leaks.get("fields", {}), suspected), **pictures}


def _ranker_curves(folder: Path, run: dict[str, Any]) -> dict[str, Any]:
    ranker = run.get("ranker")
    known = read(folder / "models" / ranker, RankerSummary) if ranker else None
    return known.curves.model_dump() if known and known.curves else {}


def _heat_maps(folder: Path, crosses: dict[str, Any] | None) -> str:
    from sluice.report import plots as report_plots

    if not crosses:
        return ""
    files = sorted((folder / "crosses").glob("adjacency_*.npy"))
    layers = {f"layer {number}": load_array(file) for number, file in enumerate(files, start=1)}
    return report_plots.heat_maps(layers, crosses["columns"])


def plots(run: dict[str, Any], curves: dict[str, Any]) -> dict[str, str]:
    """Each plot as inline SVG, for what the run has."""
    from sluice.report import plots as report_plots

    models = run.get("models", {})
    drawn = {
        "Quality of the models": report_plots.model_bars(models),
        "Calibration of the ranker": report_plots.reliability(curves.get("reliability", {})),
        "Training": report_plots.training_curves(models),
        "Federated rounds": report_plots.federated_curves(run.get("settings", {})),
        "Days with drifting tastes": report_plots.day_lines(run.get("days", [])),
        "Slates as shares of the oracle's": report_plots.slate_bars(run.get("slate", {})),
        "Where the funnel loses value": report_plots.stage_losses(run.get("slate", {}).get("loss", {})),
        "Pre-ranking: quality against cost": report_plots.prerank_frontier(run.get("prerank")),
        "Seconds per step": report_plots.step_seconds(run),
    }
    return {title: svg for title, svg in drawn.items() if svg}
