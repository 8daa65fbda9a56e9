"""Rankers beside FuxiCTR's: same rows, inputs, width, layers, batch, dropout, penalty, learning rate, clipping.

    sluice bench peers [NAME=OUT ...] [--models dnn dcn_v2] [--seeds 3] [--l2 0 1000] [--json] [--peer FOLDER]
                       [--out FOLDER] [--merge]

OUT is what `sluice features CONFIG --out OUT` made; without any a marketplace is simulated. Each run is a process of
its own. Both sides take their best of the penalties by the validation AUC of the first seed, stop by the AUC of the
whole validation window, and keep their best epoch; all else is what either does by default, the stop among it: ours
goes on while the log loss falls, for twice as long where it is level, and twice from its best epoch at a tenth of the
rate, so that it may train longer. Cross layers are of full rank. FuxiCTR has no bf16; ours is tried where the
processor multiplies it in hardware. Speeds are medians over seeds of training rows a second, reading included; behind
them the lowest and the highest.

With --out every run stays in that folder. --merge takes those that lie there, of the same rows and told the same, in
place of running them again: a comparison of hours is made piece by piece, and one that was cut goes on. After a change
of the platform its runs (NAME/MODEL-sluice-...) have to be taken away by hand; the peer's stay.

A speed counts where the platform's AUC, as a mean over seeds, is level or better: behind by no more than the standard
error of the difference, over test rows (bootstrap) and seeds.

Prints a Markdown table; with --json the last line is one JSON object, `peers.SET.MODEL.SIDE.FIGURE`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.peers.environment import peer_python
from benchmarks.peers.plan import Plan
from benchmarks.peers.rows import write_rows
from benchmarks.peers.runs import SIDES, Match, Run, median, sides_of
from benchmarks.peers.sluice_ranker import examples
from contracts.artifacts import Artifacts
from contracts.config.config import load
from contracts.config.training import Train
from contracts.errors import ConfigError
from models.evaluation.bootstrap import auc_bootstrap
from models.training.precision import PRECISIONS, fast_precisions

MARKETPLACE = Path(__file__).parents[2] / "examples" / "marketplace.toml"
PACKAGES = ("fuxictr==2.3.10", "polars>=1.20,<2", f"torch=={torch.__version__.partition('+')[0]}")
PEER = Path(tempfile.gettempdir()) / "sluice-bench-fuxictr"
MODELS = ("dnn", "dcn_v2", "deep_fm", "final_mlp")
DRAWS = 100
EVENTS = 100_000


def measure(name: str, out: Path, asked: argparse.Namespace, peer: Path, scratch: Path) -> dict[str, Any]:
    """model -> side -> figures, of one set."""
    windows = examples(out)
    write_rows(windows["train"].spec, windows, scratch / "rows")
    match = Match(sides_of(out, scratch / "rows", peer), windows, scratch, asked.merge)
    rows = windows["train"].rows
    found: dict[str, Any] = {}
    for model in asked.models:
        plan = Plan(
            model=model, rows="", out="", seed=0, threads=asked.threads, training_rows=rows,
            batch_size=Train(batch_size=asked.batch).batch_rows(rows), width=asked.width, hidden=asked.hidden,
            l2=0.0, epochs=asked.epochs)
        print(f"{name}: {rows:,} rows, batches of {plan.batch_size}", flush=True)
        runs = match.tuned(plan, asked.l2, {"sluice": asked.precisions, "fuxictr": ["fp32"]}, asked.seeds)
        found[model] = {side: figures(runs[side]) for side in SIDES}
        tested = ([run.test for run in runs[side]["fp32"]] for side in SIDES)
        found[model]["gain"] = gained(match.labels["test"], *tested)
    return found


def gained(labels: np.ndarray, ours: Sequence[np.ndarray], theirs: Sequence[np.ndarray]) -> dict[str, float]:
    """AUC of ours less that of theirs, both of the same seeds, as a mean; its standard error has the rows' variance
    (which seeds share, so that more of them do not lessen it) and the seeds'."""
    rows = np.arange(len(labels))
    of_seeds = [auc_bootstrap(labels, own, rows, baseline=other, draws=DRAWS)
                for own, other in zip(ours, theirs, strict=True)]
    values = [one.value for one in of_seeds]
    of_rows = statistics.mean(one.standard_error**2 for one in of_seeds)
    between = statistics.variance(values) / len(values) if len(values) > 1 else 0.0
    return {"auc": statistics.mean(values), "standard_error": math.sqrt(of_rows + between)}


def figures(runs: Mapping[str, Sequence[Run]]) -> dict[str, float | int | None]:
    """Of one side: those of fp32 but for the speeds; None where nothing was measured."""
    of_fp32, bf16 = runs["fp32"], runs.get("bf16", [])
    found: dict[str, float | int | None] = {
        "auc": statistics.mean(run.auc for run in of_fp32),
        "auc_deviation": statistics.stdev(run.auc for run in of_fp32) if len(of_fp32) > 1 else None,
        "log_loss": statistics.mean(run.log_loss for run in of_fp32),
        "validation_auc": statistics.mean(run.validation_auc for run in of_fp32),
        **speeds("fp32", of_fp32), **speeds("bf16", bf16),
        "auc_bf16": statistics.mean(run.auc for run in bf16) if bf16 else None,
        "seconds_to_best": median(run.outcome.seconds_to_best for run in of_fp32),
        "peak_mib": max(run.outcome.peak_mib for run in of_fp32),
        "l2": of_fp32[0].plan.l2, "seeds": len(of_fp32), "rows": of_fp32[0].plan.training_rows,
        "batch_size": of_fp32[0].plan.batch_size,
    }
    return found


def speeds(precision: str, runs: Sequence[Run]) -> dict[str, float | int | None]:
    """Rows a second: the median, and under names that say so the lowest and the highest."""
    rates = [run.outcome.rows_per_second for run in runs]
    name = f"rows_per_second_{precision}"
    return {name: median(rates) if rates else None, f"{name}_lowest": min(rates, default=None),
            f"{name}_highest": max(rates, default=None)}


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Markdown, two rows for each set and model."""
    lines = ["| set | model | | test AUC | log loss | rows/s fp32 | bf16 | AUC bf16 | s to best | MiB | l2 | "
             "AUC gained | speed, times |", "|---|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for name, models in found.items():
        for model, sides in models.items():
            for side in SIDES:
                of = sides[side]
                cells = [_said(of["auc"], of["auc_deviation"]), f"{of['log_loss']:.4f}",
                         _speed(of, "fp32"), _speed(of, "bf16"),
                         "-" if of["auc_bf16"] is None else f"{of['auc_bf16']:.4f}", f"{of['seconds_to_best']:.1f}",
                         f"{of['peak_mib']:,.0f}", f"{of['l2']:g}",
                         *(_compared(sides) if side == "sluice" else ("", ""))]
                lines.append(f"| {name} | {model} | {side} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _said(value: float, deviation: float | None) -> str:
    return f"{value:.4f}" if deviation is None else f"{value:.4f} ± {deviation:.4f}"


def _speed(of: Mapping[str, Any], precision: str) -> str:
    middle, lowest, highest = (of[f"rows_per_second_{precision}{end}"] for end in ("", "_lowest", "_highest"))
    if middle is None:
        return "-"
    return f"{middle:,.0f}" if lowest == highest else f"{middle:,.0f} ({lowest:,.0f} to {highest:,.0f})"


def _compared(sides: Mapping[str, Any]) -> tuple[str, str]:
    gain, ours, theirs = sides["gain"], sides["sluice"], sides["fuxictr"]
    speeds = [ours[f"rows_per_second_{precision}"] for precision in PRECISIONS]
    times = ", ".join(f"{speed / theirs['rows_per_second_fp32']:.1f}" for speed in speeds if speed)
    level = gain["auc"] > -gain["standard_error"]
    return f"{gain['auc']:+.4f} ± {gain['standard_error']:.4f}", times if level else f"({times}: AUC behind)"


def checked_sets(pairs: Sequence[str]) -> dict[str, Path]:
    """Name -> OUT. Raises ConfigError where OUT holds no examples."""
    found = {name: Path(out) for name, _, out in (pair.partition("=") for pair in pairs)}
    for out in found.values():
        if not Artifacts(out).encoding.exists():
            raise ConfigError(f"{out} has no encoded examples; run `sluice features CONFIG --out {out}` first")
    return found


def marketplace(folder: Path) -> Path:
    """OUT of a simulated one of 100 thousand events."""
    from pipelines.jobs.feature_job import make_features
    from pipelines.marketplace.marketplace import simulate

    config, places = load(MARKETPLACE), Artifacts(folder)
    assert config.simulation
    small = config.simulation.model_copy(update={"events": EVENTS, "users": EVENTS // 25, "items": EVENTS // 100})
    simulate(small, config.seed, places.raw, places.truth)
    make_features(config, places.raw, places)
    return folder


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="NAME=OUT")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=["dnn", "dcn_v2"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--l2", type=float, nargs="+", default=[0.0, 1000.0], help="as train.embedding_l2")
    parser.add_argument("--width", type=int, default=10, help="of a value's vector")
    parser.add_argument("--hidden", type=int, nargs="+", default=[400, 400, 400])
    parser.add_argument("--batch", type=int, help="rows of an update; none given: by the rows, as the platform does")
    parser.add_argument("--epochs", type=int, default=30, help="at most")
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=fast_precisions(torch.device("cpu")))
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--peer", type=Path, default=PEER, help="environment with FuxiCTR; made where missing")
    parser.add_argument("--out", type=Path, help="folder that keeps the runs")
    parser.add_argument("--merge", action="store_true", help="with the runs that earlier calls left in --out")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    asked = parser.parse_args(argv)
    if "fp32" not in asked.precisions:
        parser.error("--precisions has no fp32, with which the peer is compared; add it")
    if asked.merge and asked.out is None:
        parser.error("--merge needs the --out of the earlier calls")
    if not all("=" in pair for pair in asked.sets):
        parser.error("a set is NAME=OUT")
    sets = checked_sets(asked.sets)
    peer = peer_python(asked.peer, ["fuxictr"], PACKAGES)
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name, out in (sets or {"marketplace": marketplace(Path(scratch, "out"))}).items():
            found[name] = measure(name, out, asked, peer, Path(asked.out or scratch, name))
    print(table(found))
    if asked.json:
        print(json.dumps({"peers": found}))


if __name__ == "__main__":
    main()
