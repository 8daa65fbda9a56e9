"""What the server logged is the next day's input: shown items become impressions, clicks on them become labels."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq

from contracts.artifacts import ITEM, LABEL, POSITION, REQUEST, USER, Artifacts
from contracts.config.config import Config
from pipelines.ingest.ingest import ingest
from serving.response_log.response_log import ResponseLog
from serving.response_log.response_record import ResponseRecord
from tests.serving.logged_responses import NOON, logged


def responses() -> list[ResponseRecord]:
    """Four answered requests of two users, and one that failed."""
    shown = {"r0": ["a", "b"], "r1": ["b", "c", "d"], "r2": ["a"], "r3": ["d", "a"], "failed": []}
    return [
        replace(logged(name, items, time=NOON + timedelta(minutes=n), user=f"u{n % 2}",
                       context={"device": "phone", "hour": str(n)}, status="OK" if items else "INTERNAL"),
                context_lists={"moods": ["calm", "late"][: n % 3]} if n % 3 else {})
        for n, (name, items) in enumerate(shown.items())
    ]


def config(folder) -> Config:
    derive = {
        "shown": "explode(arrays_zip(items, positions))", "item": "shown.items", "position": "shown.positions",
        "moods": "context_lists['moods']", "device": "context['device']", "hour": "cast(context['hour'] as bigint)",
    }
    log = {"path": f"{folder}/answers", "derive": derive, "user_id": "user", "item_id": "item", "event_time": "time",
           "request_id": "request_id", "position": "position", "key": ["request_id", "item"]}
    clicks = {"path": f"{folder}/clicks", "on": ["request_id", "item"], "event_time": "clicked"}
    return Config.model_validate({
        "name": "loop", "log": log, "label": {"clicks": clicks},
        "fields": [{"name": "device", "kind": "categorical", "side": "context"},
                   {"name": "moods", "kind": "multi_valued", "side": "context", "length": 2},
                   {"name": "hour", "kind": "numeric", "side": "context"}],
    })


def test_logged_responses_and_their_clicks_are_ingested_as_labelled_impressions(tmp_path, spark):
    log = ResponseLog(tmp_path / "answers")
    for response in responses():
        log.append(response)
    log.close()
    serving = ResponseLog(tmp_path / "answers", flush_seconds=0.01)  # its journal is there, and is no file yet
    serving.append(logged("young", ["a"], time=NOON))
    while serving.state.waiting:
        time.sleep(0.01)
    assert list((tmp_path / "answers").glob("day=*/.*.arrows"))
    (tmp_path / "clicks").mkdir()
    clicks = {"request_id": ["r1", "r3"], "item": ["c", "d"], "clicked": [NOON + timedelta(minutes=9)] * 2}
    pq.write_table(pa.table(clicks), tmp_path / "clicks" / "part-0.parquet")
    out = Artifacts(tmp_path / "out")
    found = ingest(spark, config(tmp_path), None, out)
    serving.close()
    rows = pq.read_table(out.events / "day=2026-03-01").to_pylist()
    clicked = {("r1", "c"), ("r3", "d")}
    expected = {
        (response.request_id, item, response.user, position, float((response.request_id, item) in clicked))
        for response in responses() for item, position in zip(response.items, response.positions, strict=True)
    }
    assert {(row[REQUEST], row[ITEM], row[USER], row[POSITION], row[LABEL]) for row in rows} == expected
    assert (found.events, found.quarantined, found.positives) == (8, 0, 2)
    assert {row["device"] for row in rows} == {"phone"}
    moods = {row[REQUEST]: tuple(row["moods"] or ()) for row in rows}
    assert moods == {"r0": (), "r1": ("calm",), "r2": ("calm", "late"), "r3": ()}
