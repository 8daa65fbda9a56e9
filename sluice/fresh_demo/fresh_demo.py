"""`sluice demo --fresh`: an hour of the simulated marketplace after its log, asked of the demo's bundle three times.

    nothing             the server knows the bundle
    items               and is told of items that appear, run out, are withdrawn, change their bids (sluice.v1.Catalog)
    items_and_events    and of what was shown and clicked (sluice.v1.Events)

    OUT/fresh_hour/summary.json, report.html; each run's log and folder of `sluice serve --fresh` below its name

Each run has a server of its own, over the same bundle. The hour's clock stands still while a change is on its way
into the answers, which takes a look of the server into its store: less than the hour has between two visits.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from rich.console import Console

from contracts.artifacts import Artifacts
from contracts.bundle.bundle import MANIFEST
from contracts.errors import ConfigError, DataError
from contracts.summaries import summary
from contracts.summaries.demo import FreshHourSummary, HourRun, Share
from pipelines.marketplace.truth import META, Truth
from serving.bundle.loaded_bundle import LoadedBundle
from sluice.demo import live_requests
from sluice.demo.demo import run_demo
from sluice.demo.server_process import ServerProcess
from sluice.fresh_demo import figures
from sluice.fresh_demo.category_lift import category_lift
from sluice.fresh_demo.figures import Columns
from sluice.fresh_demo.hour import Hour, HourSettings
from sluice.fresh_demo.lived_hour import NEWS, live
from sluice.fresh_demo.told_server import ToldServer, Values
from sluice.report.fresh_hour import write_hour
from sluice.run.progress import show_progress

FOLDER = "fresh_hour"


def run_fresh(
    folder: Path, events: int | None, console: Console, settings: HourSettings | None = None
) -> FreshHourSummary:
    """Returns what it writes. Without a demo in the folder a quick one is made first, of `events` impressions.

    Raises ConfigError where there is one and `events` are given, DataError on a bundle of an earlier release.
    """
    out = Artifacts(folder)
    if not (out.bundle / MANIFEST).exists() or not (out.truth / META).exists():
        run_demo(folder, events, keep_serving=False, console=console, quick=True)
    elif events is not None:
        raise ConfigError(f"{folder} holds a demo, whose events stay as they are; leave --events out, or give another "
                          "folder with --out")
    started = time.perf_counter()
    bundle = LoadedBundle.load(out.bundle, check_parity=False)
    if bundle.event_features is None or bundle.bids is None:
        raise DataError(f"{out.bundle} was made before servers recorded events; make the demo again, in another --out")
    settings = settings or HourSettings()
    hour = draw_hour(out, bundle, settings)
    place = folder / FOLDER
    shutil.rmtree(place, ignore_errors=True)
    with _served(hour, out, bundle, place / "lift") as server:
        lift = category_lift(hour, server)
    columns, runs = _asked(hour, out, bundle, console)
    found = FreshHourSummary(
        bundle=bundle.version, ranker=bundle.settings.ranker, seed=settings.seed,
        visits=settings.visits, users=settings.users, items=hour.known, mood=settings.mood, category_lift=lift,
        changes=dict(Counter(change.kind for change in hour.shelf.changes())), runs=runs,
        clicks_gained=figures.gains(columns, auction=False), value_gained=figures.gains(columns, auction=True),
        seconds=round(time.perf_counter() - started, 1))
    summary.write(place, found)
    page = write_hour(place, found)
    for line in (*conclusion(found), f"by ten minutes, in plots: {page}"):
        console.print(line, highlight=False, markup=False, soft_wrap=True)
    return found


def _asked(
    hour: Hour, out: Artifacts, bundle: LoadedBundle, console: Console
) -> tuple[dict[str, Columns], dict[str, HourRun]]:
    """By what is sent."""
    columns, runs = dict[str, Columns](), dict[str, HourRun]()
    before, limit = clicked_before(hour, bundle), bundle.settings.serve.default_limit
    for news in NEWS:
        with show_progress(console, f"the hour, sent: {news.name.replace('_', ' ')}"), \
                _served(hour, out, bundle, out.out / FOLDER / news.name) as server:
            lived = live(hour, news, server, before, limit)
        columns[news.name] = Columns.of(hour, lived)
        runs[news.name] = figures.hour_run(columns[news.name], lived, server)
    return columns, runs


def draw_hour(out: Artifacts, bundle: LoadedBundle, settings: HourSettings) -> Hour:
    """Of guests of the log's test window, and bids as the bundle has them."""
    guests = live_requests.sample_visits(out, bundle.spec, settings.users, settings.seed)
    truth = Truth.load(out.truth)
    bids = np.empty(len(truth.item_ids))
    bids[_codes(truth, bundle)] = bundle.bids
    return Hour.drawn(truth, bids, guests, settings)


def newcomer_values(hour: Hour, items: Path, bundle: LoadedBundle) -> dict[int, Values]:
    """What the log's item table would say of the newcomers, by their codes, as far as the bundle reads it."""
    table, read = pq.read_table(items), {*(field.name for field in bundle.spec.of_side("item")), *bundle.filters}
    columns = {name: table[name].take(hour.donors.of(name)).to_pylist()
               for name in table.column_names if name in read - {"item_id"}}
    rows = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
    return {code: {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
            for code, row in enumerate(rows, start=hour.known)}


def clicked_before(hour: Hour, bundle: LoadedBundle) -> dict[int, np.ndarray]:
    """Codes of the items that users have clicked, as far as the bundle holds it."""
    codes, found = _codes(hour.truth, bundle), dict[int, np.ndarray]()
    for visit in hour.visits:
        row = bundle.users.row(visit.who.user)
        recent = bundle.recent[row] if row >= 0 else np.empty(0, dtype=np.int64)
        found[visit.user] = codes[recent[recent >= 0]]
    return found


def _codes(truth: Truth, bundle: LoadedBundle) -> np.ndarray:
    """Of the bundle's item rows, in the truth."""
    return truth.item_codes(np.asarray(bundle.items.keys.keys().to_pylist()))


@contextmanager
def _served(hour: Hour, out: Artifacts, bundle: LoadedBundle, place: Path) -> Iterator[ToldServer]:
    """A server of its own, which knows the bundle."""
    place.mkdir(parents=True)
    options = ("--fresh", str(place / "fresh"), "--workers", "1")
    server = ServerProcess(out.bundle, place / "server.log", options=options, ends_with_us=True)
    try:
        described = newcomer_values(hour, out.raw / "items", bundle)
        with ToldServer(server.target, hour.truth.values["item"], described) as told:
            yield told
    finally:
        server.stop()


def conclusion(found: FreshHourSummary) -> list[str]:
    """What a reader should take away, in sentences."""
    nothing, items, fresh = (found.runs[news.name] for news in NEWS)
    gained = found.clicks_gained
    return [
        f"an hour, {found.visits:,} visits of {found.users} users, {sum(found.changes.values())} changes among "
        f"{found.items:,} items, tastes that move by {found.mood:g} in the logit ({found.bundle}, {found.ranker})",
        f"share of the oracle's clicks: {nothing.clicks.share:.4f} with nothing sent, {items.clicks.share:.4f} with "
        f"changes of items ({_signed(gained['items over nothing'])}), {fresh.clicks.share:.4f} with events besides "
        f"({_signed(gained['items_and_events over items'])})",
        f"share of the oracle's value: {nothing.value.share:.4f}, {items.value.share:.4f} "
        f"({_signed(found.value_gained['items over nothing'])}), {fresh.value.share:.4f} "
        f"({_signed(found.value_gained['items_and_events over items'])})",
        f"value lost to items that were withdrawn or sold out: {nothing.lost:.2f} with nothing sent "
        f"({nothing.lost_share:.1%} of the oracle's, {nothing.unavailable} of {nothing.places} places), "
        f"{items.lost:.2f} with changes of items, {fresh.lost:.2f} with events besides",
        f"places spent on what the user had clicked already: {nothing.repeated}, {items.repeated}, {fresh.repeated}; "
        f"what users are after adds {nothing.mood:.3f}, {items.mood:.3f} and {fresh.mood:.3f} to the logit of what was "
        f"shown, {fresh.best_mood:.3f} to that of the oracle's slates",
        f"ten clicks in a category lift it by {found.category_lift.logit:+.4f} in the ranker's logit, standard error "
        f"{found.category_lift.standard_error:.4f}",
    ]


def _signed(gain: Share) -> str:
    return f"{gain.share:+.4f}, standard error {gain.standard_error:.4f}"
