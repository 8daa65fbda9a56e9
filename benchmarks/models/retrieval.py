"""Retrieval models beside each other on logs of positives alone, by full ranking of the whole catalogue.

    sluice bench retrieval beauty=Beauty.txt [NAME=FILE ...] [--models sasrec popularity] [--seeds 3]
                           [--split leave_one_out|time] [--refit] [--show-seen] [--set 'sasrec={"epochs": 5}']
                           [--events time rating] [--out DIR] [--json]

FILE has one line a user, the user and then the items in order; or it is a CSV or Parquet log with the columns --user,
--item, --time; with --events sequence encoders read the time between actions, and further columns.
TRAIN,TEST in place of FILE is a split that somebody published. Models are fitted to the training part,
stop early by the validation part, and the test part is read once. With --refit they are then trained anew on training
and validation, for as many epochs, before the test. Items of the history are not recommended unless --show-seen. With
--out finished runs are kept, so that a run that was killed goes on. The model `mixed` brings the others of the command
together by quotas that validation chose, as the funnel does; --set 'mixed={"candidates": 20}' says by how long a list.

Prints Markdown tables; with --json the last line is one JSON object, `retrieval.SET.MODEL.FIGURE`, means over seeds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from pydantic import BaseModel

from contracts.errors import ConfigError, DataError
from contracts.summaries.summary import Record
from models.evaluation.full_ranking import RankingFigures
from models.interactions.evaluate import evaluate
from models.interactions.given_split import Pairs, given_split, pairs_of_lines
from models.interactions.interactions import Interactions, from_columns, read_lines
from models.interactions.retriever import Retriever
from models.interactions.splits import Split, leave_one_out, split_in_time
from models.interactions.told_events import SECOND, TIME
from models.retrieval import registry
from models.retrieval.mixture import Mixture
from sluice.dev.kept_figures import KeptFigures

MIXED = "mixed"
MODELS = ("popularity", "item_cosine", "sasrec")
TABLES = (".csv", ".parquet")
SPLITS = {"leave_one_out": leave_one_out, "time": split_in_time}


class Run(Record):
    """One model of one seed."""

    seconds: float
    rows_per_second: float
    rounds: int
    validation: RankingFigures
    test: RankingFigures


def run(split: Split, model: str, seed: int, changed: registry.Settings, hide_seen: bool, refit: bool) -> Run:
    """Fits and asks."""
    retriever = registry.build(model, seed, changed)
    fitted, counts = retriever.fit(split), split.train.counts()
    validation = evaluate(retriever, split.validation, counts, hide_seen=hide_seen)
    if refit:
        retriever = _refitted(retriever, split, model, seed, changed, fitted.rounds)
    test = evaluate(retriever, split.test, counts, hide_seen=hide_seen)
    return Run(**fitted._asdict(), validation=validation, test=test)


def _refitted(
    retriever: Retriever, split: Split, model: str, seed: int, changed: registry.Settings, rounds: int
) -> Retriever:
    """Trained on all that is known at the test, without an earlier stop where the model knows of epochs."""
    whole = split._replace(train=split.test.history)
    if isinstance(retriever, Mixture):
        retriever.refit(whole)
        return retriever
    again = registry.build(model, seed, registry.fixed_rounds(model, changed, rounds))
    again.fit(whole)
    return again


def _plain(*of_run: Any) -> dict[str, object]:
    return run(*of_run).plain()


def read(path: Path, columns: argparse.Namespace) -> Interactions:
    """Raises DataError where a column is missing."""
    if path.suffix not in TABLES and not columns.events:
        return read_lines(path)
    if path.suffix not in TABLES:
        raise ConfigError(f"--events are columns, and {path} has one line a user; give a CSV or Parquet log")
    if TIME in columns.events and not columns.time:
        raise ConfigError(f"--events {TIME} needs a column of times; say which by --time")
    told = [name for name in columns.events if name != TIME]
    users, items, *rest = _columns(path, columns, told)
    times = rest.pop(0) if columns.time else None
    return from_columns(users, items, times, TIME in columns.events, rest)


def split_of(path: Path, asked: argparse.Namespace) -> Split:
    """`path` may be two, with a comma between."""
    train, comma, test = str(path).partition(",")
    if not comma:
        return SPLITS[asked.split](read(path, asked))
    if asked.events:
        raise ConfigError(f"--events are columns of one log, and {path} is a split; leave them out")
    return given_split(_pairs(Path(train), asked), _pairs(Path(test), asked))


def _pairs(path: Path, columns: argparse.Namespace) -> Pairs:
    return Pairs(*_columns(path, columns)[:2]) if path.suffix in TABLES else pairs_of_lines(path)


def _columns(path: Path, columns: argparse.Namespace, told: Sequence[str] = ()) -> list[np.ndarray]:
    """Of users, items, times in microseconds where they are asked for, and `told`."""
    table = pyarrow.csv.read_csv(path) if path.suffix == ".csv" else pq.read_table(path)
    wanted = [columns.user, columns.item, *([columns.time] if columns.time else []), *told]
    for name in wanted:
        if name not in table.column_names:
            raise DataError(f"{path} has no column {name!r}; it has {', '.join(table.column_names)}: say --user, "
                            "--item and --time")
    return [_micros(table.column(name)) if name == columns.time else table.column(name).to_numpy() for name in wanted]


def _micros(times: pa.ChunkedArray) -> np.ndarray:
    """Of timestamps, or of seconds since 1970."""
    if pa.types.is_timestamp(times.type):
        return times.cast(pa.timestamp("us", times.type.tz)).cast(pa.int64()).to_numpy()
    return (times.to_numpy() * SECOND).astype(np.int64)


def figures(runs: Sequence[Run]) -> dict[str, float]:
    """Means over seeds, speed as the median."""
    found: dict[str, float] = {
        f"{metric}_at_{k}": statistics.mean(getattr(one.test.at[k], metric) for one in runs)
        for k in runs[0].test.at for metric in ("recall", "ndcg", "coverage", "novelty")}
    found |= {"mrr": statistics.mean(one.test.mrr for one in runs), "seeds": len(runs),
              "recall_at_10_deviation": _deviation([one.test.at["10"].recall for one in runs]),
              "ndcg_at_10_deviation": _deviation([one.test.at["10"].ndcg for one in runs]),
              "validation_ndcg_at_10": statistics.mean(one.validation.at["10"].ndcg for one in runs),
              "seconds": statistics.median(one.seconds for one in runs),
              "rows_per_second": statistics.median(one.rows_per_second for one in runs)}
    return found


def _deviation(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def table(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> str:
    """Markdown, a row for each set and model."""
    lines = ["| set | model | Recall@10 | NDCG@10 | Recall@100 | MRR | coverage@10 | novelty@10, bits | rows/s | s |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for name, models in found.items():
        for model, f in models.items():
            recall, ndcg = (f"{f[f'{metric}_at_10']:.4f} ± {f[f'{metric}_at_10_deviation']:.4f}"
                            for metric in ("recall", "ndcg"))
            lines.append(f"| {name} | {model} | {recall} | {ndcg} | {f.get('recall_at_100', 0):.4f} | {f['mrr']:.4f} | "
                         f"{f['coverage_at_10']:.3f} | {f['novelty_at_10']:.1f} | {f['rows_per_second']:,.0f} | "
                         f"{f['seconds']:.0f} |")
    return "\n".join(lines)


def slices(name: str, runs: Mapping[str, Run]) -> str:
    """Markdown: Recall@10 of each model by slice of the targets."""
    first = next(iter(runs.values())).test.slices
    places = [(kind, part) for kind, parts in first.items() for part in parts]
    lines = [f"| {name}, Recall@10 | {' | '.join(f'{kind} {part}' for kind, part in places)} |",
             "|---" * (len(places) + 1) + "|",
             f"| targets | {' | '.join(f'{first[kind][part].targets:,}' for kind, part in places)} |"]
    for model, of in runs.items():
        lines.append(f"| {model} | {' | '.join(f'{of.test.slices[k][p].recall_at_10:.4f}' for k, p in places)} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    asked = options().parse_args(argv)
    changed = dict(_changed(text) for text in asked.set)
    if MIXED in asked.models:
        changed[MIXED] = _of_the_others(asked, changed)
    chosen = {model: registry.settings(model, changed.get(model)) for model in asked.models}
    with tempfile.TemporaryDirectory() as scratch:
        folder = asked.out or Path(scratch)
        found = {name: measure(name, path, chosen, asked, folder) for name, path in map(_named, asked.files)}
    print(table(found))
    if asked.json:
        print(json.dumps({"retrieval": found}))


def measure(
    name: str, path: Path, chosen: Mapping[str, BaseModel], asked: argparse.Namespace, folder: Path
) -> dict[str, dict[str, float]]:
    """model -> figures, of one set."""
    split = split_of(path, asked)
    log, actions = split.test.history, len(split.test.history.items) + len(split.test.targets.items)
    how = f"given, {len(split.test.targets.items):,} tested" if "," in str(path) else asked.split
    print(f"{name}: {log.users:,} users, {log.table - 2:,} items, {actions:,} actions; "
          f"{how}, {len(split.test.asked):,} asked", flush=True)
    found: dict[str, dict[str, float]] = {}
    first: dict[str, Run] = {}
    for model, settings in chosen.items():
        changed: dict[str, Any] = settings.model_dump()
        kept = KeptFigures(folder / "retrieval.jsonl", name, actions, model, changed, how, asked.show_seen, asked.refit,
                           *asked.events)
        runs = [Run.model_validate(kept(
            f"{name} {model} {seed}", partial(_plain, split, model, seed, changed, not asked.show_seen, asked.refit)))
            for seed in range(asked.seeds)]
        found[model], first[model] = figures(runs), runs[0]
        print(f"{name} {model}: Recall@10 {found[model]['recall_at_10']:.4f}, NDCG@10 "
              f"{found[model]['ndcg_at_10']:.4f}, {found[model]['seconds']:.0f} s", flush=True)
    print(slices(name, first))
    return found


def _named(text: str) -> tuple[str, Path]:
    name, _, path = text.rpartition("=")
    return name or Path(path).stem, Path(path)


def _of_the_others(asked: argparse.Namespace, changed: Mapping[str, registry.Settings]) -> registry.Settings:
    """Mixed of the other models of this command, as they are set, unless --set names others."""
    others = [model for model in asked.models if model != MIXED]
    found: dict[str, object] = {"settings": {model: changed.get(model, {}) for model in others},
                                "hide_seen": not asked.show_seen}
    return found | ({"models": others} if len(others) > 1 else {}) | dict(changed.get(MIXED, {}))


def _changed(text: str) -> tuple[str, registry.Settings]:
    model, _, settings = text.partition("=")
    try:
        return model, json.loads(settings)
    except json.JSONDecodeError as error:
        raise ConfigError(f"--set {text!r}: {error}; write --set 'MODEL={{\"key\": value}}'") from error


def options() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="NAME=FILE")
    parser.add_argument("--models", nargs="+", default=MODELS, choices=registry.names())
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--split", choices=SPLITS, default="leave_one_out")
    parser.add_argument("--refit", action="store_true", help="train on validation too before the test")
    parser.add_argument("--show-seen", action="store_true", help="items of the history may be recommended again")
    parser.add_argument("--set", action="append", default=[], metavar="MODEL=JSON", help="settings of a model")
    parser.add_argument("--user", default="user_id")
    parser.add_argument("--item", default="item_id")
    parser.add_argument("--time", default="", help="a column of times, as such or in seconds since 1970; without it "
                        "the order of the file counts")
    parser.add_argument("--events", nargs="+", default=[], metavar="COLUMN",
                        help="what sequence encoders read beside the items: columns, and `time` for the gaps")
    parser.add_argument("--out", type=Path, help="keeps finished runs")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    return parser


if __name__ == "__main__":
    main()
