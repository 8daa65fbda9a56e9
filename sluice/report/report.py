"""`sluice report DIR`: one HTML page that needs nothing but itself, from the records of the run's jobs.

What was not done is named on the page; the rest is shown.
"""

from __future__ import annotations

from pathlib import Path

from contracts.artifacts import Artifacts
from contracts.bundle.bundle import load_array
from contracts.summaries.leaks import LeaksSummary
from contracts.summaries.run import EvaluatedCrosses, RunSummary
from contracts.summaries.train import ReliabilityCurve
from serving.console.look import look, tables
from sluice.report import plots
from sluice.report.changes import changes
from sluice.report.conclusion import too_good
from sluice.report.gathered import gathered, missing, reliability_of
from sluice.report.positives_alone import meaning
from sluice.report.tables import MODEL_COLUMNS, figure, novelty_figures, novelty_slices

PAGE = "report.html"


def write_report(folder: Path, since: Path | None = None) -> Path:
    """Writes DIR/report.html; `since` is the run that it is compared with, None: the last one reported of this folder.
    Raises DataError where a folder holds no run, or a summary that is damaged."""
    run = gathered(folder)
    page = rendered(
        PAGE,
        run=run,
        changes=changes(folder, run, since),
        columns=MODEL_COLUMNS,
        slices=novelty_slices(run.models or {}),
        slice_figures=novelty_figures(run.models or {}),
        missing=missing(run),
        positives_alone=meaning(run.features.drawn) if run.features and run.features.drawn else None,
        too_good=too_good(run.models or {}, run.ranker, run.leaks),
        planted=run.crosses if isinstance(run.crosses, EvaluatedCrosses) else None,
        plots=drawn(run, reliability_of(folder, run.ranker)),
        leak_plots=leak_plots(run.leaks),
        heat_maps=heat_maps(Artifacts(folder).crosses, run.crosses.columns if run.crosses else ()),
    )
    path = folder / PAGE
    path.write_text(page, encoding="utf-8")
    return path


def rendered(template: str, **values: object) -> str:
    """A template of this room with these values in it."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("sluice.report", "."), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["figure"] = figure
    return environment.get_template(template).render(look=look(), tables=tables(), **values)


def drawn(run: RunSummary, curve: ReliabilityCurve | None) -> dict[str, str]:
    """Each plot as inline SVG by its title, for what the run has."""
    models = run.models or {}
    pictures = {
        "Quality of the models": plots.model_bars(models),
        "Calibration of the ranker": plots.reliability(curve),
        "Training": plots.training_curves(models),
        "Federated rounds": plots.federated_curves(run.settings or {}),
        "Days with drifting tastes": plots.day_lines(run.days or ()),
        "Retrieval: what each channel finds": plots.channel_bars(run.retrieval),
        "Retrieval: what each model finds of whom": plots.channel_slices(run.train.channels if run.train else {}),
        "Slates as shares of the oracle's": plots.slate_bars(run.slate),
        "Where the funnel loses value": plots.stage_losses(run.slate.loss if run.slate else None),
        "Pre-ranking: quality against cost": plots.prerank_frontier(run.prerank),
        "Seconds per job": plots.job_seconds(run),
    }
    return {title: svg for title, svg in pictures.items() if svg}


def leak_plots(leaks: LeaksSummary | None) -> dict[str, str]:
    """The picture of each suspected field, and one of all fields under ""."""
    if leaks is None:
        return {}
    pictures = {name: plots.value_rates(entry.profile) for name, entry in leaks.suspected.items()}
    return {"": plots.field_bars(leaks.fields, leaks.suspected), **pictures}


def heat_maps(folder: Path, columns: tuple[str, ...]) -> str:
    """The adjacency of every layer of the search; nothing where there was none."""
    files = sorted(folder.glob("adjacency_*.npy")) if columns else []
    layers = {f"layer {number}": load_array(file) for number, file in enumerate(files, start=1)}
    return plots.heat_maps(layers, columns)
