"""A past request has its example's inputs and the clicks that had been published before it."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.artifacts import ITEM, LABEL, LABEL_TIME, ROW, TIME, USER, Artifacts
from serving.bundle.loaded_bundle import LoadedBundle
from serving.replay import item_snapshot, past_requests
from tests.serving.conftest import encode_events
from tests.serving.replay.log_times import HOURS, START, TEST


def test_a_request_knows_the_clicks_published_before_it(
    market: Any, log: Artifacts, loaded: LoadedBundle, asked: list[past_requests.PastRequest]
) -> None:
    assert sum(request.uniform for request in asked) == 30
    assert len(asked) == 40
    assert all(request.clicked >= 0 for request in asked if not request.uniform)
    events = item_snapshot.events(log, [ROW, USER, ITEM, TIME, LABEL, LABEL_TIME], None, START + timedelta(hours=HOURS))
    rows = events.to_pylist()
    inputs, _ = encode_events(market)
    matched = 0
    for request in asked:
        same = [row for row in rows if row[TIME] >= TEST
                and np.array_equal(inputs.ids[row[ROW]], request.requester.inputs.ids[0])
                and np.array_equal(inputs.dense[row[ROW]], request.requester.inputs.dense[0])]
        candidates = []
        for row in same:
            publish = row[TIME].replace(hour=0, minute=0, second=0, microsecond=0)
            known = [one[ITEM] for one in rows if one[USER] == row[USER] and one[LABEL] > 0
                     and one[LABEL_TIME] <= publish][::-1]
            candidates.append(loaded.items.rows(known[:50]).tolist())
        matched += request.requester.recent.tolist() in candidates
    assert matched == len(asked)


def test_an_event_fresh_request_knows_what_happened_before_and_not_its_own_click(
    market: Any, log: Artifacts, loaded: LoadedBundle, tmp_path: Path
) -> None:
    """Of a log that knows of each click at its moment."""
    out = Artifacts(shutil.copytree(log.out, tmp_path / "out"))
    for file in out.features.glob("*/*.parquet"):
        table = pq.read_table(file)
        pq.write_table(table.set_column(table.schema.get_field_index(LABEL_TIME), LABEL_TIME, table[TIME]), file)
    events = item_snapshot.events(out, [USER, ITEM, TIME, LABEL], None, START + timedelta(hours=HOURS)).to_pylist()
    clicks = [row for row in events if row[LABEL] > 0]
    before = [loaded.items.rows([one[ITEM] for one in clicks if one[USER] == row[USER] and one[TIME] < row[TIME]][::-1]
                                [:50]).tolist() for row in clicks if row[TIME] >= TEST]
    asked = past_requests.sample(out, market.spec, loaded.items, "test", 0, 20, 0, np.random.default_rng(0))
    assert len(asked) == 20
    assert all(request.requester.recent.tolist() in before for request in asked)


def test_the_same_seed_draws_the_same_requests(market: Any, log: Artifacts, loaded: LoadedBundle) -> None:
    draws = [past_requests.sample(log, market.spec, loaded.items, "test", 5, 2, 0, np.random.default_rng(seed))
             for seed in (3, 3, 4)]
    inputs = [[request.requester.inputs.ids.tolist() for request in requests] for requests in draws]
    assert inputs[0] == inputs[1] != inputs[2]


def test_more_are_not_drawn_than_there_are(market: Any, log: Artifacts, loaded: LoadedBundle) -> None:
    many = past_requests.sample(log, market.spec, loaded.items, "test", 10**6, 10**6, 0, np.random.default_rng(0))
    end = START + timedelta(hours=HOURS)
    assert len(many) == item_snapshot.events(log, [TIME], TEST, end).num_rows
    assert all(request.uniform for request in many)


def test_no_row_is_read_that_no_request_needs(
    market: Any, log: Artifacts, loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a log, however long, the sampled impressions and the clicks of their users."""
    read, events = list[pa.Table](), item_snapshot.events

    def seen(*arguments: Any) -> pa.Table:
        read.append(events(*arguments))
        return read[-1]

    monkeypatch.setattr(past_requests, "events", seen)
    past_requests.sample(log, market.spec, loaded.items, "test", 5, 2, 0, np.random.default_rng(3))
    shown, clicks = read
    assert shown.num_rows == 7
    assert min(clicks[LABEL].to_pylist()) == 1
    assert set(clicks[USER].to_pylist()) <= set(shown[USER].to_pylist())


@pytest.mark.slow
def test_histories_are_told_what_the_log_says_of_their_events(
    market: Any, log: Artifacts, told_bundle: LoadedBundle, tmp_path: Path
) -> None:
    """Clicks of an hour after their impressions, of kinds in turn; as of the time of the request."""
    out = Artifacts(shutil.copytree(log.out, tmp_path / "out"))
    stamp, hour = pa.timestamp("us", "UTC"), 3600 * 10**6
    rows = item_snapshot.events(out, [ROW, USER, ITEM, TIME, LABEL, LABEL_TIME], None, START + timedelta(hours=HOURS))
    at = rows[TIME].cast(pa.int64()).to_numpy()
    kinds = [("click", "order", "odd", None)[row % 4] for row in rows[ROW].to_pylist()]
    (out.events / "day=all").mkdir(parents=True)
    pq.write_table(pa.table({ROW: rows[ROW], "_click_time": pa.array(at + hour).cast(stamp), "kind": kinds}),
                   out.events / "day=all" / "part.parquet")
    tables = told_bundle.told
    assert tables is not None
    asked = past_requests.sample(out, market.spec, told_bundle.items, "test", 0, 20, 0, np.random.default_rng(0),
                                 tables)
    by_item: dict[str, set[tuple[int, int]]] = {}
    for row, time, kind in zip(rows.to_pylist(), at.tolist(), kinds, strict=True):
        by_item.setdefault(row[ITEM], set()).add((time + hour, {"click": 2, "order": 3}.get(kind or "", 1)))
    assert any(len(request.requester.recent) for request in asked)
    for request in asked:
        events = request.requester.events
        assert events is not None
        assert events.now == request.time or not len(events.times)
        told = zip(told_bundle.items.keys_of(request.requester.recent), events.times.tolist(),
                   events.values[:, 0].tolist(), strict=True)
        assert all((time, value) in by_item[item] for item, time, value in told)
