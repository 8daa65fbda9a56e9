"""Clicks on shown items, against a loop over all pairs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.config.config import Config
from contracts.errors import ConfigError, DataError, SchemaError
from contracts.table_files import landed_name
from sluice.release import click_log

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def config(**clicks) -> Config:
    return Config.model_validate({
        "name": "loop", "log": {"path": "log", "request_id": "request", "item_id": "ad", "event_time": "time"},
        "label": {"clicks": {"path": "clicks", "on": ["ad", "request"], "event_time": "at", **clicks}},
        "fields": [{"name": "ad", "kind": "categorical", "side": "item"}],
    })


def test_each_shown_item_finds_its_own_clicks(tmp_path):
    draw, n = np.random.default_rng(5), 300
    keys = [(f"r{draw.integers(20)}", f"i{draw.integers(8)}", int(draw.integers(100))) for _ in range(n)]
    when = [(f"r{draw.integers(22)}", f"i{draw.integers(9)}", int(draw.integers(100))) for _ in range(400)]
    shown = pa.table({"request_id": [k[0] for k in keys], "item": [k[1] for k in keys],
                      "time": pa.array([NOON + timedelta(seconds=k[2]) for k in keys], click_log.TIME)})
    pq.write_table(pa.table({"ad": [w[1] for w in when], "request": [w[0] for w in when],
                             "at": [(NOON + timedelta(seconds=w[2])).replace(tzinfo=None) for w in when]}),
                   tmp_path / "part.parquet")
    found = click_log.clicked(shown, click_log.read(config(), tmp_path), 30)
    expected = [any(w[:2] == k[:2] and 0 <= w[2] - k[2] <= 30 for w in when) for k in keys]
    assert 0 < sum(expected) < n
    assert found.tolist() == expected
    start, end = NOON - timedelta(seconds=30), NOON + timedelta(seconds=90)
    waits = [[w[2] - k[2] for k in keys if w[:2] == k[:2]] for w in when]
    missed = [one for one in waits if one and not any(0 <= wait <= 30 for wait in one)]
    early = sum(min(one) < 0 for one in missed)
    unknown = sum(not one and w[2] < 90 for one, w in zip(waits, when, strict=True))
    assert click_log.unpaid(shown, click_log.read(config(), tmp_path), 30, start, end) == (
        early, len(missed) - early, unknown)
    assert 0 < early < len(missed)


def test_what_cannot_be_joined_is_said(tmp_path):
    pq.write_table(pa.table({"ad": ["i"]}), tmp_path / "part.parquet")
    with pytest.raises(SchemaError, match="'request'"):
        click_log.read(config(), tmp_path)
    with pytest.raises(ConfigError, match=r"label\.clicks\.on must name .*\('request', 'ad'\) and no more"):
        click_log.read(config(on=["ad"]), tmp_path)
    with pytest.raises(ConfigError, match=r"are csv \(label\.clicks\.format\); --clicks names") as caught:
        click_log.read(config(format="csv"), tmp_path)
    assert "clicks.on" not in str(caught.value)


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_where_there_are_none_it_says_so(tmp_path, format_):
    (tmp_path / "empty").mkdir()
    for name in ("nowhere", "empty"):
        with pytest.raises(DataError, match=f"no clicks at {tmp_path / name}; --clicks names"):
            click_log.read(config(format=format_), str(tmp_path / name))


def test_what_a_server_landed_is_read_whatever_the_format_of_the_log(tmp_path):
    clicks = pa.table({"ad": ["i"], "request": ["r"], "at": [NOON]})
    pq.write_table(clicks, tmp_path / landed_name(1, 1))
    (tmp_path / ".landing").touch()
    assert click_log.read(config(format="csv"), tmp_path).to_pylist() == [
        {"request_id": "r", "item": "i", "clicked": NOON}]
    (tmp_path / "own.csv").write_text("ad,request,at\n")
    with pytest.raises(ConfigError, match="are csv"):
        click_log.read(config(format="csv"), tmp_path)


def test_files_of_other_columns_and_types_are_read_as_each_is(tmp_path):
    """A server lands other ones once another bundle is served; the first file says nothing of the later ones."""
    others = pa.table({"ad": ["i0"], "at": [NOON]})  # of a configuration that called the request otherwise
    numbers = pa.table({"at": [NOON], "request": pa.array([7]), "ad": pa.array([12])})
    texts = pa.table({"request": ["r"], "ad": ["012"], "at": pa.array([NOON], pa.timestamp("ns", "UTC")), "more": [1]})
    for number, table in enumerate((others, numbers, texts, numbers), 1):
        pq.write_table(table, tmp_path / landed_name(number, number))
    found = click_log.read(config(format="csv"), tmp_path)
    assert sorted(found["request_id"].to_pylist()) == ["7", "7", "r"]
    assert sorted(found["item"].to_pylist()) == ["012", "12", "12"]
    assert found["clicked"].to_pylist() == [NOON] * 3


def test_a_damaged_file_is_named_and_what_is_no_parquet_passed_over(tmp_path):
    clicks = pa.table({"ad": ["i"], "request": ["r"], "at": [NOON]})
    for name in ("one.parquet", "two.parquet", "three"):
        pq.write_table(clicks, tmp_path / name)
    (tmp_path / "README").write_text("what lies here")
    assert click_log.read(config(), tmp_path).num_rows == 3
    two = tmp_path / "two.parquet"
    two.write_bytes(two.read_bytes()[:40])
    with pytest.raises(DataError, match=f"{two} is damaged or cut short"):
        click_log.read(config(), tmp_path)


def test_a_column_that_is_no_key_or_time_is_said(tmp_path):
    pq.write_table(pa.table({"ad": ["i"], "request": ["r"], "at": ["noon"]}), tmp_path / "one.parquet")
    with pytest.raises(SchemaError, match=r"one\.parquet has .*, at string, which cannot be read as"):
        click_log.read(config(), tmp_path)
