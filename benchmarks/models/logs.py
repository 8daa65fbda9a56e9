"""Every ranker with all settings by default on logs that no default was chosen by, beside popularity and LightGBM.

    sluice bench logs [NAME or FILE ...] [--out OUT] [--seeds 1] [--rows N] [--world 0] [--crosses] [--models ...]

A NAME is one of benchmarks/models/made_logs.py, without any all of them; a FILE is a table, which `sluice init` guesses
first, or a configuration (.toml). Features are made once, where OUT has none, so that
`sluice bench peers NAME=OUT/NAME` reads the same rows. --crosses searches for crosses before the training, as `sluice
run` does. --world is the seed of a made log; any but the first lies in OUT/world-N.

Prints a Markdown table: AUC on validation and test, mean and deviation over the seeds (of one seed the standard error
over users, else rows), and how often each was served. Of a made log the AUC of the true probabilities is printed, over
all rows. The last line is one JSON object, `LOG.MODEL.FIGURE`.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from benchmarks.models import made_logs
from contracts.artifacts import Artifacts
from contracts.config.config import Config, load
from contracts.features.feature_spec import FeatureSpec
from contracts.summaries.train import RankerSummary
from models.evaluation.metrics import auc
from models.jobs.lightgbm_baseline import lightgbm_figures
from models.jobs.ranker_choice import choose_ranker, unlike_models
from models.jobs.ranker_training import train_ranker
from models.jobs.training_task import TrainingTask
from models.tracking.tracking import Tracker
from sluice.commands.init_command import write_config
from sluice.run import jobs

OUTSIDE, LIGHTGBM_ROWS = "lightgbm", 1_000_000
Figures = dict[str, Any]


class Run(NamedTuple):
    """Of one seed; `ranker` is what is served."""

    models: dict[str, RankerSummary]
    ranker: str


def prepared(asked: str, arguments: argparse.Namespace) -> tuple[Config, Artifacts, float | None]:
    """The configuration, where its files go, and the AUC of the truth where it is known."""
    truth, path = None, Path(asked)
    if asked in made_logs.LOGS:
        path, made, label = made_logs.write(asked, arguments.out, arguments.rows, arguments.world)
        truth = auc(label.astype(float), made.logit)
    target = path
    if path.suffix != ".toml":
        target = arguments.out / f"{path.stem}.toml"
        if not target.exists():
            expression = f"{made_logs.LABEL} = 1" if truth is not None else arguments.label
            write_config(path, target, expression, True, Console(file=io.StringIO()))
    config = load(target)
    given = {"models": tuple(arguments.models)} if arguments.models else {}
    train = config.train.model_copy(update={"lightgbm_rows": LIGHTGBM_ROWS, **given})
    return config.model_copy(update={"train": train}), Artifacts(arguments.out / target.stem), truth


def measure(config: Config, out: Artifacts, arguments: argparse.Namespace, console: Console) -> Figures:
    """model -> figures."""
    if not out.encoding.exists():
        jobs.run_features(config, arguments.data, out, console)
    if arguments.crosses:
        jobs.run_crosses(config, out, console)
    runs, outside = [], None
    with Tracker(out.out, config.name, silent=True) as tracker:
        for seed in range(arguments.seeds):
            task = TrainingTask(config=config, out=out, spec=FeatureSpec.read(out.encoding), seed=config.seed + seed,
                                tracker=tracker, force=False, on_progress=lambda what, done, total: None)
            models = {name: train_ranker(task, name) for name in unlike_models(config.train, task.spec)}
            runs.append(Run(models, choose_ranker(task, models).ranker))
            outside = outside or lightgbm_figures(task)
    found: Figures = {name: _figures(runs, name) for name in runs[0].models}
    if outside:
        found[OUTSIDE] = {"auc": outside.auc, "auc_deviation": None, "validation_auc": outside.validation_auc,
                          "served": 0}
    return found


def _figures(runs: Sequence[Run], name: str) -> Figures:
    of = [run.models[name] for run in runs]
    return {"auc": statistics.mean(one.auc for one in of),
            "auc_deviation": statistics.stdev(one.auc for one in of) if len(of) > 1 else of[0].auc_standard_error,
            "gauc": of[0].gauc, "validation_auc": statistics.mean(one.validation_auc or 0.0 for one in of),
            "epochs": [one.epochs for one in of], "best_epoch": [one.best_epoch for one in of],
            "served": sum(run.ranker == name for run in runs)}


def rows_of(name: str, found: Figures, truth: float | None) -> list[str]:
    """Of a Markdown table."""
    lines = [f"| {name} | {model} | {of['validation_auc']:.4f} | {of['auc']:.4f}{_spread(of['auc_deviation'])} | "
             f"{of['served'] or ''} |" for model, of in found.items()]
    return lines if truth is None else [*lines, f"| {name} | truth | | {truth:.4f} | |"]


def _spread(deviation: float | None) -> str:
    return "" if deviation is None else f" ± {deviation:.4f}"


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="*", metavar="NAME or FILE")
    parser.add_argument("--out", type=Path, default=Path("out/logs"))
    parser.add_argument("--data", type=Path, help="of a configuration")
    parser.add_argument("--label", help="expression, of a table")
    parser.add_argument("--rows", type=int, help="of a made log")
    parser.add_argument("--world", type=int, default=0, help="seed of a made log")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--models", nargs="+", help="in place of the configured ones")
    parser.add_argument("--crosses", action="store_true")
    arguments = parser.parse_args(argv)
    if arguments.world:
        arguments.out = arguments.out / f"world-{arguments.world}"
    arguments.out.mkdir(parents=True, exist_ok=True)
    table, found = ["| log | model | validation AUC | test AUC | served |", "|---|---|---|---|---|"], {}
    for asked in arguments.logs or made_logs.LOGS:
        config, out, truth = prepared(asked, arguments)
        found[config.name] = measure(config, out, arguments, Console(stderr=True))
        table += rows_of(config.name, found[config.name], truth)
        print("\n".join(table[-len(found[config.name]) - 1 :]), flush=True)
    print("\n".join(table))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
