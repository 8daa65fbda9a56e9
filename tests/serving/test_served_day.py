"""A day of a real server, read back by the real commands: what callers were told and clicked, beside what `features`,
`watch` and `bill` make of the response log, to the row and to the cent."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from contracts.artifacts import ITEM, LABEL, POSITION, REQUEST, USER, Artifacts
from contracts.config.stages import Serve
from serving.bundle.loaded_bundle import LoadedBundle
from serving.response_log import response_recorder
from serving.response_log.response_log import ResponseLog
from serving.server.client import RankingClient
from serving.server.connection import RankingFailed
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel
from sluice.cli import app
from tests.docs_blocks import blocks
from tests.serving.in_process_server import InProcessServer

PAGE = "reference/response_log.md"
MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)
CALLS, MINUTES = 140, 10
WINDOW = timedelta(hours=1)
REST = """
[windows]
statistics = 0.25
train = 0.25
validation = 0.25
test = 0.25

[watch]
min_answers = 100
min_clicks = 10
max_p99_ms = 60000
max_miscalibration = 9

[[fields]]
name = "device"
kind = "categorical"
side = "context"

[[fields]]
name = "hour"
kind = "numeric"
side = "context"
"""


class Clock(datetime):
    """A call every ten minutes makes a day of 140."""

    present = MIDNIGHT

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return cls.present


class Shown(NamedTuple):
    """By a caller's own notes; `clicked` None where nobody did, or too late."""

    request: str
    user: str
    item: str
    position: int
    price: float
    probability: float
    time: datetime
    clicked: datetime | None


class Day(NamedTuple):
    """`folder` holds answers, clicks, items and served.toml; `payer` of each item."""

    folder: Path
    shown: list[Shown]
    payer: dict[str, str]
    version: str


@pytest.fixture(scope="module")
def day(loaded: LoadedBundle, tmp_path_factory: pytest.TempPathFactory) -> Day:
    folder = tmp_path_factory.mktemp("served")
    payer = {loaded.items.key(row): f"payer {row % 7}" for row in range(len(loaded.items))}
    write(folder / "items", {"item_id": list(payer), "advertiser": list(payer.values())})
    log = ResponseLog(folder / "answers")
    made = RankingServicer(Funnel(loaded), loaded.manifest, Serve(deadline_ms=60_000), log)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(response_recorder, "datetime", Clock)
        with InProcessServer(made) as server, RankingClient(server.target) as client:
            shown = visits(client)
            with pytest.raises(RankingFailed, match="limit"):
                client.rank("u01", request_id="wrong", limit=1000, seconds=60)
    made.close()
    log.close()
    clicks = [one for one in shown if one.clicked]
    late = [one for one in shown if not one.clicked][:3]
    write(folder / "clicks", {
        "request_id": [one.request for one in [*clicks, *clicks[:2], *late]],  # two were sent twice
        "item_id": [one.item for one in [*clicks, *clicks[:2], *late]],
        "event_time": [one.clicked or one.time + 2 * WINDOW for one in [*clicks, *clicks[:2], *late]]})
    (folder / "served.toml").write_text('name = "market"\n' + blocks(PAGE, "toml")[0] + REST)
    return Day(folder, shown, payer, loaded.version)


def visits(client: RankingClient) -> list[Shown]:
    """Who is shown an item clicks on it with the promised probability, within the half hour."""
    draw, found = np.random.default_rng(3), []
    for number in range(CALLS):
        Clock.present = MIDNIGHT + number * timedelta(minutes=MINUTES)
        user = f"u{number % 60:02d}"
        answer = client.rank(user, request_id=f"r{number}", limit=6, context={"device": "phone", "hour": number / 6},
                             seconds=60)
        for position, item in enumerate(answer.items, 1):
            when = Clock.present + timedelta(seconds=int(draw.integers(1800)))
            found.append(Shown(f"r{number}", user, item.item_id, position, item.price, item.probability, Clock.present,
                               when if draw.random() < item.probability else None))
    return found


def write(folder: Path, columns: dict[str, list]) -> None:
    folder.mkdir()
    pq.write_table(pa.table(columns), folder / "part.parquet")


def command(*words: object) -> Sequence[str]:
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.output.splitlines()


STRETCH = ("--since", "2026-03-01", "--until", "2026-03-02")


@pytest.mark.usefixtures("spark")
def test_features_are_made_of_every_item_shown_and_every_click_in_time(day: Day, tmp_path: Path) -> None:
    command("features", day.folder / "served.toml", "--data", day.folder, "--out", tmp_path)
    rows = ds.dataset(Artifacts(tmp_path).events, format="parquet").to_table().to_pylist()
    assert len(rows) == len(day.shown)
    assert {(row[REQUEST], row[USER], row[ITEM], row[POSITION], row[LABEL]) for row in rows} == {
        (one.request, one.user, one.item, one.position, float(one.clicked is not None)) for one in day.shown}
    assert {(row["device"], row["hour"]) for row in rows} == {("phone", number / 6) for number in range(CALLS)}


def test_the_watch_sees_every_call_and_every_click(day: Day, tmp_path: Path) -> None:
    said = command("watch", day.folder / "served.toml", "--data", day.folder, "--out", tmp_path, "--answers",
                   day.folder / "answers", "--bundle", day.version, *STRETCH, "--json")
    found = json.loads(said[-1])
    figures = {figure["name"]: figure for figure in found["figures"]}
    assert found["answers"] == CALLS
    assert (figures["error_rate"]["value"], figures["refusal_rate"]["value"]) == (0.0, 0.0)
    assert f"of {CALLS} answers" in figures["error_rate"]["sentence"]
    newest = max(one.clicked for one in day.shown if one.clicked)
    late = max(one.time for one in day.shown if not one.clicked)
    reach = min(max(newest, late), MIDNIGHT + timedelta(days=1)) - WINDOW
    top = [one for one in day.shown if one.position == 1 and one.time < reach]
    expected = sum(one.probability for one in top) / sum(one.clicked is not None for one in top)
    assert figures["predicted_over_observed"]["value"] == pytest.approx(expected, rel=1e-6)


def test_the_bill_is_what_the_answers_said(day: Day) -> None:
    said = command("bill", day.folder / "served.toml", "--data", day.folder, "--answers", day.folder / "answers",
                   "--by", "advertiser", *STRETCH, "--json")
    told = defaultdict[str, list[float]](list)
    for one in day.shown:
        if one.clicked:
            told[day.payer[one.item]].append(one.price)
    found = json.loads(said[-1])
    assert {line["payer"]: line["amount"] for line in found["lines"] if line["clicks"]} == {
        payer: math.fsum(prices) for payer, prices in told.items()}
    assert (found["clicks"], found["shown"], found["late"]) == (sum(map(len, told.values())), len(day.shown), 3)
    assert (found["early"], found["unknown"], found["lost_calls"], found["unpriced"]) == (0, 0, 0, 0)
