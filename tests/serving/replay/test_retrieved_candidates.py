"""Past requests of a small log, the item table as of the test window, and what retrieval answers to them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from contracts.artifacts import ITEM, LABEL, LABEL_TIME, ROW, TIME, USER, Artifacts
from contracts.bundle.candidate_lists import CandidateItems, CandidateLists
from contracts.errors import DataError
from contracts.windows import TimedWindows
from serving.bundle.loaded_bundle import LoadedBundle
from serving.replay import item_snapshot, past_requests, retrieved_candidates
from serving.replay.item_snapshot import SnapshotArtifacts
from serving.request.request_features import RequestFeatures, block
from tests.serving.conftest import encode_events

START, TEST = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 5, tzinfo=UTC)
HOURS = 144


@pytest.fixture(scope="module")
def log(market: Any, trained: Artifacts, tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    """The market's events as the pipelines leave them: six days, the last two of them the test window."""
    import shutil

    out = Artifacts(Path(shutil.copytree(trained.out, tmp_path_factory.mktemp("log") / "out")))
    draw, count = np.random.default_rng(8), len(market.labels)
    times = [START + timedelta(hours=float(hour)) for hour in np.sort(draw.uniform(0, HOURS, count))]
    users = draw.integers(0, len(market.users[USER]), count)
    reserved = {
        ROW: np.arange(count), USER: [market.users[USER][u] for u in users], ITEM: market.events["item_id"],
        TIME: times, LABEL: market.labels, LABEL_TIME: [time + timedelta(hours=1) for time in times],
    }
    raw = pa.table(reserved | market.events)
    stamp = pa.timestamp("us", tz="UTC")
    for name in (TIME, LABEL_TIME):
        raw = raw.set_column(raw.schema.get_field_index(name), name, raw[name].cast(stamp))
    _write_days(out.features, raw, times)
    request, candidate = encode_events(market)
    columns: dict[str, Any] = {ROW: np.arange(count), USER: users.astype(np.int64), LABEL: market.labels}
    for slots, part in ((market.spec.block_ids("request"), request), (market.spec.block_ids("candidate"), candidate)):
        for slot in slots:
            values = part.ids[:, slot.start : slot.start + slot.width]
            columns[slot.name] = values[:, 0] if slot.width == 1 else list(values)
    for dense in (*market.spec.block_dense("request"), *market.spec.block_dense("candidate")):
        raw_values = market.events[dense.field]
        columns[dense.name] = np.array([np.nan if v is None else v for v in raw_values], dtype=np.float64)
    encoded = pa.table(columns)
    late = np.array([time >= TEST for time in times])
    for name, rows in (("train", ~late), ("test", late)):
        chosen = np.flatnonzero(rows)
        _write_days(out.examples(name), encoded.take(pa.array(chosen)), [times[row] for row in chosen])
    spans = {"train": (START, TEST), "test": (TEST, START + timedelta(hours=HOURS))}
    TimedWindows(spans=spans).write(out.windows)
    return out


def _write_days(folder: Path, table: pa.Table, times: list[datetime]) -> None:
    days = np.array([f"{time:%Y-%m-%d}" for time in times])
    for day in np.unique(days):
        target = folder / f"day={day}"
        target.mkdir(parents=True)
        pq.write_table(table.take(pa.array(np.flatnonzero(days == day))), target / "part-0.parquet")


def test_the_item_table_knows_nothing_of_the_test_window(market: Any, log: Artifacts) -> None:
    item_snapshot.write(log, market.spec)
    told = pq.read_table(SnapshotArtifacts(log.out).online_items).to_pylist()
    shown = item_snapshot.events(log, [ITEM, LABEL, TIME, "price"], None, TEST).to_pylist()
    for row in told:
        before = [event for event in shown if event[ITEM] == row[ITEM]]
        assert all(event[TIME] < TEST for event in before)
        assert row["_shown"] == len(before)
        assert row["_clicks"] == sum(event[LABEL] for event in before)
        assert row["price"] == (before[-1]["price"] if before else None)
    assert len(told) == len(market.items[ITEM])


def test_a_missing_column_names_the_step(market: Any, log: Artifacts) -> None:
    with pytest.raises(DataError, match="sluice features"):
        item_snapshot.events(log, ["nothing"], None, TEST)


@pytest.fixture(scope="module")
def asked(market: Any, log: Artifacts, loaded: LoadedBundle) -> list[past_requests.PastRequest]:
    return past_requests.sample(log, market.spec, loaded.items, "test", 30, 10, 86_400, np.random.default_rng(0))


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


def test_candidates_are_what_retrieval_answers_with_the_ranker_s_logits(
    loaded: LoadedBundle, asked: list[past_requests.PastRequest], tmp_path: Path
) -> None:
    lists = retrieved_candidates.retrieve(loaded, asked, np.random.default_rng(0))
    assert lists.rows.shape == (len(asked), loaded.settings.retrieve.candidates)
    features = RequestFeatures(loaded)
    for number in (0, 7):
        rows = lists.rows[number][lists.valid[number]].astype(np.int64)
        assert len(set(rows.tolist())) == len(rows)
        assert not set(asked[number].requester.recent.tolist()) & set(rows.tolist())
        candidate = features.candidate_inputs(rows, asked[number].requester.inputs.ids)
        with torch.inference_mode():
            logits = loaded.ranker(block(asked[number].requester.inputs), block(candidate))
        np.testing.assert_allclose(lists.teacher[number][lists.valid[number]], logits.numpy(), atol=1e-5)
        assert (lists.clicked[number] == (lists.rows[number] == asked[number].clicked)).all()
    lists.save(tmp_path / "test")
    retrieved_candidates.items_of(loaded).save(tmp_path)
    back = CandidateLists.load(tmp_path / "test")
    np.testing.assert_array_equal(back.pair_ids, lists.pair_ids)
    np.testing.assert_array_equal(CandidateItems.load(tmp_path).ids, loaded.items.ids)
    with pytest.raises(DataError, match="sluice prerank"):
        CandidateLists.load(tmp_path / "train")


def test_a_length_draws_among_the_candidates(loaded: LoadedBundle, asked: list[past_requests.PastRequest]) -> None:
    whole = retrieved_candidates.retrieve(loaded, asked[:3], np.random.default_rng(0))
    part = retrieved_candidates.retrieve(loaded, asked[:3], np.random.default_rng(0), 9)
    assert part.rows.shape == (3, 9)
    for number in range(3):
        assert set(part.rows[number].tolist()) <= set(whole.rows[number].tolist())
