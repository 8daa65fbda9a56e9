"""What the response log wrote is read back: by time, by bundle, without what callers did wrong."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.errors import DataError
from serving.replay import response_history
from serving.request.query import MORE_COMES
from serving.response_log.journal import publish
from serving.response_log.response_log import ResponseLog
from serving.response_log.response_record import LOST, SCHEMA, ResponseRecord, counted, to_batch
from tests.serving.logged_responses import logged

NIGHT = datetime(2026, 3, 1, 23, 59, tzinfo=UTC)


def answer(minute: int, version: str, status: str = "OK") -> ResponseRecord:
    items = ["a", "b"] if status == "OK" else []
    return logged(
        f"r{minute}", items, time=NIGHT + timedelta(minutes=minute), user=f"u{minute % 3}", version=version,
        probabilities=[0.25, 0.5][: len(items)], created=NIGHT, status=status, microseconds=1000 * minute)


@pytest.fixture
def folder(tmp_path):
    log = ResponseLog(tmp_path / "answers")
    for minute in range(10):
        log.append(answer(minute, "one" if minute < 4 else "two", "INTERNAL" if minute == 5 else "OK"))
    log.append(answer(2, "one", "INVALID_ARGUMENT"))
    log.append(answer(3, "one", "CANCELLED"))
    log.close()
    return tmp_path / "answers"


def test_a_stretch_over_midnight(folder):
    found = response_history.read(folder, NIGHT + timedelta(minutes=2), NIGHT + timedelta(minutes=7))
    assert found.table["request_id"].to_pylist() == ["r2", "r3", "r4", "r5", "r6"]
    assert found.versions == ["one", "two"]
    assert found.of("two").failed.tolist() == [False, True, False]
    assert found.of("two").milliseconds.tolist() == [4.0, 6.0]


def test_retrieval_is_incomplete_where_its_stage_says_so_and_unknown_where_nothing_is_said(tmp_path):
    log = ResponseLog(tmp_path / "answers")
    for minute, ended in enumerate(("complete", "degraded", "skipped", None, "degraded")):
        status = "INTERNAL" if minute == 4 else "OK"
        one = answer(minute, "one", status)
        told = replace(one, stages=["rank", "retrieve"], stage_statuses=["degraded", ended],
                       stage_causes=["", ""]) if ended else one
        log.append(told)
    log.append(replace(answer(5, "one"), stages=["retrieve"], stage_statuses=["degraded"], stage_causes=[MORE_COMES]))
    log.close()
    found = response_history.read(tmp_path / "answers", NIGHT, NIGHT + timedelta(days=1))
    assert found.incomplete_retrieval.tolist() == [False, True, True]


def test_shown_items_in_rows(folder):
    found = response_history.read(folder, NIGHT, NIGHT + timedelta(days=1))
    rows = response_history.shown(found, NIGHT + timedelta(minutes=2), first_only=False).to_pylist()
    assert [(row["request_id"], row["user"], row["item"], row["probability"]) for row in rows] == [
        ("r0", "u0", "a", 0.25), ("r0", "u0", "b", 0.5), ("r1", "u1", "a", 0.25), ("r1", "u1", "b", 0.5)]
    assert response_history.shown(found, NIGHT + timedelta(days=1), first_only=True)["item"].to_pylist() == ["a"] * 9


def test_an_empty_log_has_no_answers_and_a_missing_one_is_said(tmp_path):
    (tmp_path / "answers").mkdir()
    assert len(response_history.read(tmp_path / "answers", NIGHT, NIGHT + timedelta(days=1))) == 0
    with pytest.raises(DataError, match="--log-answers"):
        response_history.read(tmp_path / "none", NIGHT, NIGHT + timedelta(days=1))


def test_journals_are_read_before_they_are_files(tmp_path):
    log = ResponseLog(tmp_path, flush_seconds=0.01)
    log.append(answer(0, "one"))
    while log.state.waiting:
        time.sleep(0.01)
    assert not list(tmp_path.glob("day=*/*.parquet"))
    assert response_history.read(tmp_path, NIGHT, NIGHT + timedelta(days=1)).table["request_id"].to_pylist() == ["r0"]
    [journal] = tmp_path.glob("day=*/.*.arrows")
    publish(journal)  # and not yet removed
    assert len(response_history.read(tmp_path, NIGHT, NIGHT + timedelta(days=1))) == 1
    log.close()
    assert len(response_history.read(tmp_path, NIGHT, NIGHT + timedelta(days=1))) == 1


def test_calls_are_counted_and_lost_ones_are_told_apart(tmp_path):
    log = ResponseLog(tmp_path)
    slates = [replace(answer(0, "one"), request_id="r/top"), replace(answer(0, "one"), request_id="r/side", calls=0)]
    refused, lost = (counted(status, calls, "one", NIGHT) for status, calls in (("RESOURCE_EXHAUSTED", 3), (LOST, 5)))
    for row in [*slates, answer(1, "one", "DEADLINE_EXCEEDED"), refused, lost]:
        log.append(replace(row, time=NIGHT))
    log.close()
    found = response_history.read(tmp_path, NIGHT, NIGHT + timedelta(days=1)).of("one")
    assert (len(found.failed), int(found.failed.sum())) == (2, 1)
    assert (len(found.refused), int(found.refused.sum())) == (5, 3)
    assert found.failures == {"DEADLINE_EXCEEDED": 1}
    assert found.lost == {"one": 5}


def test_files_from_before_prices_were_logged_are_read(tmp_path):
    day = tmp_path / "day=2026-03-01"
    day.mkdir()
    old = to_batch([answer(0, "one")]).select(SCHEMA.names[:13])
    pq.write_table(pa.Table.from_batches([old]), day / "answers-235900-1-0123abcd.parquet")
    found = response_history.read(tmp_path, NIGHT, NIGHT + timedelta(days=1))
    assert found.table["request_id"].to_pylist() == ["r0"]
    assert found.failed.tolist() == [False]
    assert found.table["prices"].to_pylist() == [None]
