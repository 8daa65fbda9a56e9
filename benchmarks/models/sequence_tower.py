"""What a user's sequence is worth to a run: the same log with a sequence encoder as channel and tower, and without.

    sluice bench sequence_tower CONFIG --out OUT [--data DIR] [--models din dcn_v2] [--visits 400] [--json]

CONFIG is that of a log with users, items and times. Two runs from one set of features: `with` has the channel `sasrec`
and the ranker `din_sequence` among its candidates, `without` has neither; all else, seeds too, is as CONFIG says or,
of the rankers, as --models says, but for quotas: where CONFIG has no other channel, `without` keeps its own and those
of `with` are chosen on validation (look at both before a difference of slates is the encoder's). Of both: test AUC and
GAUC of every ranker and which one is served; the share of the test window's clicks among the candidates, of each
channel alone and mixed by the quotas (where there are further channels). Where CONFIG has a simulated marketplace,
whose truth is known, also the share of the oracle's slate that the whole funnel reaches, what each stage loses of it,
and the funnel's milliseconds a request in this process, over --visits users of the test window, the same for both.

Prints a Markdown table; with --json the last line is one JSON object, `sequence_tower.{with,without}.FIGURE`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from contracts.artifacts import Artifacts
from contracts.config.config import Config, load
from contracts.config.stages import ENCODERS, Channel
from contracts.errors import ConfigError
from contracts.features.feature_spec import FeatureSpec
from contracts.summaries.run import RunSummary
from pipelines.marketplace.marketplace import simulate
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.stages.funnel import Funnel
from sluice.demo import oracle
from sluice.demo.evaluate_slates import ServedVisits, evaluate_slates, item_codes, market
from sluice.demo.live_requests import Served, Visit, sample_visits
from sluice.demo.slates import KINDS
from sluice.run import jobs

CHANNEL, RANKER = "sasrec", "din_sequence"
ARMS = ("without", "with")


def arm_of(config: Config, arm: str, models: Sequence[str] = ()) -> Config:
    """`models` in place of the configured rankers. Raises ConfigError where the log has no sequence to read."""
    log = config.log
    if not (log.user_id and log.item_id and log.event_time):
        raise ConfigError(f"{config.name}: a sequence is of users, items and times; set log.user_id, log.item_id and "
                          "log.event_time")
    channels = {name: channel for name, channel in config.retrieve.channels.items() if name not in ENCODERS}
    rankers = [name for name in models or config.train.models if name != RANKER]
    if arm == "with":
        channels[CHANNEL] = config.retrieve.channels.get(CHANNEL, Channel())
        rankers.append(RANKER)
    return config.model_copy(update={
        "retrieve": config.retrieve.model_copy(update={"channels": channels}),
        "train": config.train.model_copy(update={"models": tuple(rankers), "ranker": "best"})})


def made_features(config: Config, data: Path | None, folder: Path, console: Console) -> Artifacts:
    """Of both runs, with crosses where CONFIG wants some; simulated first where there is no `data`."""
    out = Artifacts(folder)
    if data is None and config.simulation is not None:
        simulate(config.simulation, config.seed, out.raw, out.truth)
        data = out.raw
    jobs.run_features(config, data, out, console)
    if config.crosses.budget:
        jobs.run_crosses(config, out, console)
    jobs.run_pretrain(config, out, console)
    return out


def run_arm(config: Config, made: Artifacts, folder: Path, console: Console) -> RunSummary:
    """From the features to a bundle in `folder`."""
    shutil.copytree(made.out, folder, ignore=shutil.ignore_patterns(made.raw.name))
    out = Artifacts(folder)
    trained = jobs.run_train(config, out, console)
    run = RunSummary(name=config.name, models=trained.models, ranker=trained.ranker, train=trained)
    return jobs.run_to_bundle(config, out, console, run)


def figures(run: RunSummary) -> dict[str, Any]:
    """What a run says of its rankers and channels."""
    models = {name: {"auc": made.auc, "gauc": made.gauc} for name, made in (run.models or {}).items()}
    recall = {candidates: {**found.alone, "mixed": found.mixed}
              for candidates, found in (run.retrieval.recall if run.retrieval else {}).items()}
    return {"ranker": run.ranker, "models": models, "recall": recall,
            "quotas": dict(run.retrieval.quotas) if run.retrieval else {}}


def slate_figures(config: Config, out: Artifacts, count: int) -> dict[str, Any]:
    """Of the bundle in `out`, asked in this process, against the truth."""
    truth, bundle = oracle.truth_of_test(config, out), LoadedBundle.load(out.bundle, check_parity=False)
    visits, items = sample_visits(out, FeatureSpec.read(out.encoding), count, config.seed), item_codes(truth, bundle)
    markets = [market(truth, items, bundle, visit, config) for visit in visits]
    served = {kind: asked(Funnel(bundle), visits, config.serve.default_limit, rerank=kind != "clicks")
              for kind in KINDS}
    found = evaluate_slates(ServedVisits(bundle, visits, markets, served), config)
    return {"share_of_oracle": {kind: getattr(found, kind).funnel for kind in KINDS},
            "popularity": {kind: getattr(found, kind).popularity for kind in KINDS},
            "lost": found.loss.model_dump(), "oracle_auc": oracle.best_auc(truth, out),
            "p50_ms": statistics.median(served["value"].milliseconds)}


def asked(funnel: Funnel, visits: Sequence[Visit], limit: int, rerank: bool) -> Served:
    """Slates of a funnel in this process, a request after the other."""
    slates: list[list[str] | None] = []
    milliseconds = []
    for visit in visits:
        begun = time.perf_counter()
        answer = funnel.rank(RankQuery(user=visit.user, limit=limit, context=visit.context, rerank=rerank),
                             Deadline(None))
        milliseconds.append((time.perf_counter() - begun) * 1000)
        slates.append([item.item for item in answer.items])
    return Served(slates, milliseconds, [])


def table(found: Mapping[str, Mapping[str, Any]]) -> str:
    """A row a figure, a column an arm; what an arm does not have is left empty."""
    flat = {arm: dict(_flat(made)) for arm, made in found.items()}
    names = dict.fromkeys(name for made in flat.values() for name in made)
    lines = [f"| figure | {' | '.join(flat)} |", "|---" * (1 + len(flat)) + "|"]
    return "\n".join([*lines, *(f"| {name} | {' | '.join(_cell(made.get(name)) for made in flat.values())} |"
                                for name in names)])


def _flat(value: Mapping[str, Any], above: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, part in value.items():
        found += _flat(part, f"{above}{name} ") if isinstance(part, Mapping) else [(above + name, part)]
    return found


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.4f}" if isinstance(value, float) else str(value)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="an empty folder")
    parser.add_argument("--data", type=Path, help="the folder that {data} stands for in the configuration")
    parser.add_argument("--models", nargs="+", default=(), help="rankers in place of those of the configuration")
    parser.add_argument("--visits", type=int, default=400)
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    chosen = parser.parse_args(argv)
    config, console = load(chosen.config), Console(stderr=True)
    if chosen.out.exists() and any(chosen.out.iterdir()):
        parser.error(f"{chosen.out} is not empty")
    arms = {arm: arm_of(config, arm, chosen.models) for arm in ARMS}
    made = made_features(config, chosen.data, chosen.out / "features", console)
    found: dict[str, dict[str, Any]] = {}
    for arm, changed in arms.items():
        found[arm] = figures(run_arm(changed, made, chosen.out / arm, console))
        if made.truth.exists():
            found[arm] |= slate_figures(changed, Artifacts(chosen.out / arm), chosen.visits)
        print(f"{arm}: {json.dumps(found[arm])}", flush=True)
    print(table(found))
    if chosen.json:
        print(json.dumps({"sequence_tower": found}))


if __name__ == "__main__":
    main()
