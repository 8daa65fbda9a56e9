"""The bill of a log is what the answers said, clicked item by clicked item."""

from __future__ import annotations

import json
import math
import tomllib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from contracts.config.config import Config
from contracts.config.log import Table
from contracts.errors import ConfigError, SchemaError
from serving.response_log.response_log import ResponseLog
from serving.response_log.response_record import LOST, counted
from sluice.cli import app
from sluice.release.bill import Billed, bill, text
from tests.serving.logged_responses import NOON, logged

SINCE, UNTIL = NOON - timedelta(hours=1), NOON + timedelta(days=1)
CONFIG = """
name = "market"
[log]
path = "{data}/answers"
user_id = "user"
item_id = "item"
request_id = "request_id"
event_time = "time"
[label.clicks]
path = "{data}/clicks"
on = ["request_id", "item"]
event_time = "clicked"
window = "10m"
[items]
path = "{data}/items"
key = "item_id"
[[fields]]
name = "item"
kind = "categorical"
side = "item"
"""


def write_clicks(folder: Path, clicks: list[tuple[str, str, datetime]]) -> None:
    (folder / "clicks").mkdir()
    columns = dict(zip(("request_id", "item", "clicked"), map(list, zip(*clicks, strict=True)), strict=True))
    pq.write_table(pa.table(columns), folder / "clicks" / "part.parquet")


@pytest.fixture
def market(tmp_path: Path) -> Path:
    """Two answered requests of an auction, one without, and clicks on some of it."""
    (tmp_path / "market.toml").write_text(CONFIG)
    (tmp_path / "items").mkdir()
    pq.write_table(pa.table({"item_id": ["a", "b", "c"], "advertiser": ["x", "y", "x"]}),
                   tmp_path / "items" / "part.parquet")
    log = ResponseLog(tmp_path / "answers")
    log.append(replace(logged("r1", ["a", "b"]), prices=[0.1, 0.7]))
    log.append(replace(logged("r2", ["c", "a", "d"]), prices=[0.2, 0.3, 0.5]))
    log.append(logged("r3", ["a"]))
    log.append(replace(logged("r1", ["a"], time=NOON + timedelta(minutes=1)), prices=[9.0]))  # an id used again
    log.append(counted(LOST, 3, "market-1", NOON))
    log.close()
    soon, late = NOON + timedelta(minutes=5), NOON + timedelta(hours=1)
    write_clicks(tmp_path, [("r1", "a", soon), ("r1", "a", soon), ("r1", "b", soon), ("r2", "c", soon),
                            ("r2", "d", soon), ("r2", "a", late), ("r3", "a", soon), ("r9", "a", soon),
                            ("r2", "d", NOON - timedelta(seconds=1)), ("r2", "a", NOON - timedelta(seconds=1))])
    return tmp_path


def config(folder: Path) -> Config:
        return Config.model_validate(tomllib.loads((folder / "market.toml").read_text()))


def test_each_click_is_paid_once_at_the_price_of_its_answer(market: Path) -> None:
    found = bill(config(market), Billed(market / "answers", SINCE, UNTIL, by="advertiser", data=market))
    assert {line.payer: (line.shown, line.clicks, line.amount) for line in found.lines} == {
        "x": (4, 2, math.fsum([0.1, 0.2])), "y": (1, 1, 0.7), "(not in the items' table)": (1, 1, 0.5)}
    assert (found.amount, found.clicks, found.shown) == (math.fsum([0.1, 0.2, 0.5, 0.7]), 4, 6)
    assert (found.unpriced, found.repeated) == (1, 1)
    assert (found.early, found.late, found.unknown) == (2, 1, 2)
    assert {"1 clicks after the window, not paid", "2 clicks on nothing that these answers sold"} <= set(text(found))


@pytest.mark.parametrize(("text", "settings"), [
    ("item_id,advertiser\n007,012\n12,12\n", {}),
    ("item_id;advertiser\n007;012\n12;12\n", {"options": {"header": "true", "sep": ";"}}),
    ("item_id,adv\n007,ADV-012\n12,ADV-12\n", {"derive": {"advertiser": "substring(adv, 5)"}}),
    ("007,012\n12,12\n", {"options": {}, "schema_ddl": "item_id STRING, advertiser STRING"}),
])
def test_the_table_of_items_is_read_as_a_run_reads_it(tmp_path: Path, text: str, settings: dict[str, object]) -> None:
    (tmp_path / "market.toml").write_text(CONFIG)
    (tmp_path / "items.csv").write_text(text)
    log = ResponseLog(tmp_path / "answers")
    log.append(replace(logged("r1", ["007", "12"]), prices=[0.1, 0.7]))
    log.close()
    write_clicks(tmp_path, [("r1", "007", NOON + timedelta(minutes=5))])
    items = {"path": "{data}/items.csv", "format": "csv", "options": {"header": "true"}, "key": "item_id", **settings}
    of_csv = config(tmp_path).model_copy(update={"items": Table.model_validate(items)})
    found = bill(of_csv, Billed(tmp_path / "answers", SINCE, UNTIL, by="advertiser", data=tmp_path))
    assert [(line.payer, line.shown, line.amount) for line in found.lines] == [("012", 1, 0.1), ("12", 1, 0.0)]


def test_without_a_column_each_item_pays(market: Path) -> None:
    found = bill(config(market), Billed(market / "answers", SINCE, UNTIL, data=market))
    assert [(line.payer, line.amount) for line in found.lines] == [("b", 0.7), ("d", 0.5), ("c", 0.2), ("a", 0.1)]


def test_the_stretch_does_not_hold_its_end(market: Path) -> None:
    found = bill(config(market), Billed(market / "answers", SINCE, NOON, data=market))
    assert (found.lines, found.amount) == ((), 0.0)


def test_what_is_lost_is_said(market: Path) -> None:
    found = bill(config(market), Billed(market / "answers", SINCE, datetime.now(UTC) + timedelta(hours=1), data=market))
    assert found.lost_calls == 3
    assert "3 calls are lost" in text(found)[-1]


def test_what_cannot_be_billed_is_said(market: Path) -> None:
    with pytest.raises(SchemaError, match="did you mean 'advertiser'"):
        bill(config(market), Billed(market / "answers", SINCE, UNTIL, by="advertisr", data=market))
    bare = config(market).model_copy(update={"items": None})
    with pytest.raises(ConfigError, match="items' table"):
        bill(bare, Billed(market / "answers", SINCE, UNTIL, by="advertiser", data=market))


def test_the_command(market: Path) -> None:
    asked = ["bill", str(market / "market.toml"), "--answers", str(market / "answers"), "--data", str(market)]
    done = CliRunner().invoke(app, [*asked, "--since", "2026-03-01", "--until", "2026-03-02", "--by", "advertiser",
                                    "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.output.splitlines()[-1])["clicks"] == 4
    done = CliRunner().invoke(app, [*asked, "--since", "2026-03-02", "--until", "2026-03-02"])
    assert done.exit_code == 2
    assert "is empty" in done.output
