"""The item table as of the test window knows what the log had shown before, and nothing more."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from contracts.artifacts import ITEM, LABEL, TIME, Artifacts
from contracts.errors import DataError
from serving.replay import item_snapshot
from serving.replay.item_snapshot import SnapshotArtifacts
from tests.another_order import in_another_order
from tests.serving.replay.log_times import HOURS, START, TEST


@pytest.mark.parametrize("window", ["train", "test"])
def test_the_item_table_knows_nothing_of_the_window(window: str, market: Any, log: Artifacts) -> None:
    start = item_snapshot.window(log, window)[0]
    item_snapshot.write(log, market.spec, window)
    told = pq.read_table(SnapshotArtifacts(log.out).online_items).to_pylist()
    shown = item_snapshot.events(log, [ITEM, LABEL, TIME, "price"], None, start).to_pylist()
    for row in told:
        before = [event for event in shown if event[ITEM] == row[ITEM]]
        assert all(event[TIME] < start for event in before)
        assert row["_shown"] == len(before)
        assert row["_clicks"] == sum(event[LABEL] for event in before)
        assert row["price"] == (before[-1]["price"] if before else None)
    assert len(told) == len(market.items[ITEM])


def test_a_missing_column_names_the_step(market: Any, log: Artifacts) -> None:
    with pytest.raises(DataError, match="sluice features"):
        item_snapshot.events(log, ["nothing"], None, TEST)


def test_events_are_of_the_span_alone_and_in_time_order(log: Artifacts) -> None:
    until = TEST + timedelta(hours=5)
    times = item_snapshot.events(log, [TIME], TEST, until)[TIME].to_pylist()
    assert times == sorted(times)
    assert TEST <= times[0] <= times[-1] < until
    before = item_snapshot.events(log, [TIME], None, TEST).num_rows
    after = item_snapshot.events(log, [TIME], TEST, START + timedelta(hours=HOURS)).num_rows
    assert before + after == item_snapshot.events(log, [TIME], None, START + timedelta(hours=HOURS)).num_rows


def test_a_window_is_read_as_the_pipelines_resolved_it(log: Artifacts) -> None:
    assert item_snapshot.window(log, "test") == (TEST, START + timedelta(hours=HOURS))


def test_only_the_item_table_is_another(log: Artifacts) -> None:
    snapshot = SnapshotArtifacts(log.out)
    assert snapshot.online_items != log.online_items
    assert (snapshot.online_users, snapshot.encoding) == (log.online_users, log.encoding)


def test_the_order_of_rows_in_files_does_not_matter(market: Any, log: Artifacts, tmp_path: Path) -> None:
    other = in_another_order(log, tmp_path / "other")
    for out in (log, other):
        item_snapshot.write(out, market.spec)
    told = [pq.read_table(SnapshotArtifacts(out.out).online_items) for out in (log, other)]
    assert told[0].equals(told[1])
    shown = [item_snapshot.events(out, [ITEM, "price"], None, TEST) for out in (log, other)]
    assert shown[0].equals(shown[1])
    assert shown[0].column_names == [ITEM, "price"]
