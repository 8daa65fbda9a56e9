"""Days with drifting tastes: a platform that updates itself every day against one trained once.

    sluice bench days --out OUT [--config FILE]

Before each day the whole daily chain runs on what was known by then: features of the last eight days, training that
starts from the champion, a bundle, the registry, the gate. The bundle that is champion then, and the first one of all,
answer the same visits of the day; expected clicks of their slates by the truth of that day, as shares of the best
slates'. Both learn from the log of the simulator's own policy. OUT/report.html shows the plot; the last line is JSON.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import Console

from contracts.artifacts import Artifacts
from contracts.config.config import Config, load
from contracts.config.simulation import Simulation
from contracts.config.windows import Windows
from contracts.errors import ConfigError, GateRefused
from contracts.summaries import summary
from contracts.summaries.days import DaysSummary, PlatformDay
from models.tracking.bundle_registry import CHAMPION, BundleRegistry
from pipelines.engine.session import session
from pipelines.marketplace.marketplace import simulate
from pipelines.marketplace.truth import Truth
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.stages.funnel import Funnel
from sluice.demo.evaluate_slates import item_codes, market
from sluice.demo.live_requests import Visit
from sluice.release import registration
from sluice.release.warm_parent import WarmStartSource
from sluice.report.report import write_report
from sluice.run import jobs
from sluice.run.bundle_job import build_bundle

CONFIG = Path(__file__).with_suffix(".toml")
HISTORY, TRAIN = 8, (1, 6)  # days of log a run reads; those of them that it trains on
UPDATED, ONCE = "updates itself", "trained once"


def run(config: Config, folder: Path, days: int, visits: int, cold: bool) -> list[PlatformDay]:
    simulate(simulation_of(config), config.seed, folder / "raw", folder / "truth")
    store, found, first = BundleRegistry(f"sqlite:///{folder.resolve() / 'mlflow.db'}"), [], None
    with session(config.spark, "days"):
        for day in range(HISTORY, HISTORY + days):
            begun = time.perf_counter()
            refused = update(config, folder, day, store, cold)
            champion = store.by_alias(config.name, CHAMPION)
            if champion is None:
                raise GateRefused(f"no bundle may serve on the first day: {refused}")
            newest = store.fetch(champion, folder / "bundles")
            first = first or newest
            shares, errors = shares_of_oracle(config, folder, day, {UPDATED: newest, ONCE: first}, visits)
            found.append(PlatformDay(
                day=day, share_of_oracle=shares, standard_error=errors, champion=champion.version, refused=refused,
                seconds=round(time.perf_counter() - begun, 1)))
            print(found[-1].model_dump_json(), flush=True)
    return found


def update(config: Config, folder: Path, day: int, store: BundleRegistry, cold: bool) -> str:
    """The daily chain before `day`; the gate's reason where it refused."""
    out, console = Artifacts(folder / f"day-{day:03d}"), Console(quiet=True)
    dated = config.model_copy(update={"windows": windows_of(config, day)})
    jobs.run_features(dated, known_by(config, folder, day), out, console)
    jobs.run_train(dated, out, console, warm_start=WarmStartSource(cold=cold, registry=store.uri))
    build_bundle(dated, out, console)
    registration.register(out.out, store.uri, "challenger", "")
    try:
        registration.promote(out.out, store.uri, force=False)
    except GateRefused as refused:
        return str(refused)
    return ""


def simulation_of(config: Config) -> Simulation:
    if config.simulation is None:
        raise ConfigError(f"{config.name} has no [simulation] section; days need one")
    return config.simulation


def _start(config: Config, day: int) -> datetime:
    return simulation_of(config).start + timedelta(days=day)


def windows_of(config: Config, day: int) -> Windows:
    cuts = [_start(config, day - HISTORY + offset) for offset in (0, *TRAIN, HISTORY - 1, HISTORY)]
    return Windows(statistics=(cuts[0], cuts[1]), train=(cuts[1], cuts[2]), validation=(cuts[2], cuts[3]),
                   test=(cuts[3], cuts[4]))


def known_by(config: Config, folder: Path, day: int) -> Path:
    """The log of the last days as it was known when `day` began."""
    now, target = pa.scalar(_start(config, day), pa.timestamp("us", "UTC")), folder / f"day-{day:03d}" / "data"
    for table in ("impressions", "clicks"):
        (target / table).mkdir(parents=True, exist_ok=True)
        for past in range(day - HISTORY, day):
            name = f"part-{past:03d}.parquet"
            rows = pq.read_table(folder / "raw" / table / name)
            pq.write_table(rows.filter(pc.less_equal(rows["known_time"], now)), target / table / name)
    for table in ("users", "items"):
        if not (target / table).exists():
            (target / table).symlink_to((folder / "raw" / table).resolve())
    return target


def visits_of(config: Config, folder: Path, day: int, count: int) -> list[Visit]:
    """Requests of the day, as they came."""
    log = pq.read_table(folder / "raw" / "impressions" / f"part-{day:03d}.parquet")
    log = log.filter(pc.equal(log["position"], 1)).append_column("hour", pc.hour(log.filter(
        pc.equal(log["position"], 1))["event_time"]))
    chosen = np.random.default_rng([config.seed, day]).permutation(log.num_rows)[:count]
    rows = log.select(["user_id", "device", "placement", "hour"]).take(chosen).to_pylist()
    return [Visit(row.pop("user_id"), row) for row in rows]


def shares_of_oracle(
    config: Config, folder: Path, day: int, bundles: dict[str, Path], count: int
) -> tuple[dict[str, float], dict[str, float]]:
    """Per bundle: expected clicks over those of the best slates, and the standard error of that share over visits."""
    truth, visits = Truth.of_day(folder / "truth", day), visits_of(config, folder, day, count)
    shares, errors = {}, {}
    for name, place in bundles.items():
        bundle = LoadedBundle.load(place, check_parity=False)
        funnel, limit, items = Funnel(bundle), config.serve.default_limit, item_codes(truth, bundle)
        got, best = np.empty(len(visits)), np.empty(len(visits))
        for number, visit in enumerate(visits):
            world = market(truth, items, bundle, visit, config)
            answer = funnel.rank(RankQuery(user=visit.user, limit=limit, context=visit.context, rerank=False,
                                           explain=False), Deadline(None))
            got[number] = world.total("clicks", bundle.items.rows([item.item for item in answer.items]))
            best[number] = world.total("clicks", world.best("clicks"))
        shares[name] = float(got.sum() / best.sum())
        errors[name] = float((got - shares[name] * best).std() / best.mean() / np.sqrt(len(visits)))
    return shares, errors


def table(days: list[PlatformDay]) -> str:
    lines = [f"| day | {UPDATED} | {ONCE} | gate |", "|---|---|---|---|"]
    for day in days:
        cells = [f"{day.share_of_oracle[name]:.3f} ± {day.standard_error[name]:.3f}" for name in (UPDATED, ONCE)]
        lines.append(f"| {day.day} | {cells[0]} | {cells[1]} | {'refused' if day.refused else 'passed'} |")
    means = [np.mean([day.share_of_oracle[name] for day in days]) for name in (UPDATED, ONCE)]
    return "\n".join([*lines, f"| mean | {means[0]:.3f} | {means[1]:.3f} | |"])


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--config", type=Path, default=CONFIG)
    parser.add_argument("--days", type=int, default=14)
    parser.add_argument("--visits", type=int, default=300)
    parser.add_argument("--events-per-day", type=int, default=12_000)
    parser.add_argument("--drift", type=float, help="radians a day, instead of the configured ones")
    parser.add_argument("--cold", action="store_true", help="every day's training starts from nothing")
    chosen = parser.parse_args(argv)
    config, span = load(chosen.config), HISTORY + chosen.days
    changes = {"days": span, "events": span * chosen.events_per_day}
    simulation = Simulation.model_validate(simulation_of(config).model_dump() | changes | (
        {} if chosen.drift is None else {"drift": chosen.drift}))
    config = config.model_copy(update={"simulation": simulation})
    begun = time.perf_counter()
    days = run(config, chosen.out, chosen.days, chosen.visits, chosen.cold)
    found = DaysSummary(name=config.name, marketplace_version=config.version, days=tuple(days),
                        seconds=round(time.perf_counter() - begun, 1))
    summary.write(chosen.out, found)
    write_report(chosen.out)
    print(table(days))
    print(found.model_dump_json())


if __name__ == "__main__":
    main()
