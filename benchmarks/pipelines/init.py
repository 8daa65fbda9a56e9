"""`sluice init` judged by the outcome: what logistic regression and a DNN reach with the configuration it writes.

    sluice bench init [FILE ...] [--out OUT] [--label EXPRESSION] [--seeds 1]

A FILE is a table, which is guessed first, or a configuration (.toml), which is taken as it is: give what another
version wrote to see before and after. Without one, the two tables of benchmarks/pipelines/made_tables.py. Prints a
Markdown table of AUC on validation and test; the last line is JSON, with the guess's processor time.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.pipelines import made_tables
from contracts.artifacts import Artifacts
from contracts.config.config import Config, load
from sluice.commands.init_command import write_config
from sluice.run import jobs

MODELS = ("logistic_regression", "dnn")
Row = dict[str, float | str]


def outcome(path: Path, out: Path, label: str | None, seeds: int) -> list[Row]:
    """A row per model."""
    target, guessed = path, 0.0
    if path.suffix != ".toml":
        target, begin = out / f"{path.stem}.toml", time.process_time()
        write_config(path, target, label, True, Console(file=io.StringIO()))
        guessed = time.process_time() - begin
    config, folder, console = load(target), Artifacts(out / target.stem), Console(stderr=True)
    config = config.model_copy(update={"train": config.train.model_copy(update={
        "models": MODELS, "lightgbm_rows": 0, "tower_epochs": 1})})
    jobs.run_features(config, None, folder, console)
    return [_row(target, model, guessed, _figures(config, folder, model, seeds, console)) for model in MODELS]


def _figures(config: Config, folder: Artifacts, model: str, seeds: int, console: Console) -> list[tuple[float, float]]:
    trained = [jobs.run_train(config, folder, console, config.seed + seed).models[model] for seed in range(seeds)]
    return [(one.validation_auc or 0.0, one.auc) for one in trained]


def _row(target: Path, model: str, guessed: float, figures: Sequence[tuple[float, float]]) -> Row:
    validation, test = (statistics.mean(column) for column in zip(*figures, strict=True))
    return {"table": target.stem, "model": model, "validation": round(validation, 4), "test": round(test, 4),
            "guess_cpu_seconds": round(guessed, 2)}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE")
    parser.add_argument("--out", type=Path, default=Path("out/init"))
    parser.add_argument("--label")
    parser.add_argument("--seeds", type=int, default=1)
    arguments = parser.parse_args(argv)
    arguments.out.mkdir(parents=True, exist_ok=True)
    files = arguments.files or [made_tables.access(arguments.out / "access.csv"),
                                made_tables.clicks(arguments.out / "clicks.csv")]
    rows = [row for path in files for row in outcome(path, arguments.out, arguments.label, arguments.seeds)]
    print("| table | model | validation AUC | test AUC |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row['table']} | {row['model']} | {row['validation']:.4f} | {row['test']:.4f} |")
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
