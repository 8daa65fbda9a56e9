"""Random small logs of every format, with what goes wrong in logs, and configurations with every kind of field."""

from __future__ import annotations

import csv
import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

START, DAYS, ROWS = datetime(2025, 12, 29, tzinfo=UTC), 8, 400
USERS = ["u1", "ü-2", "日本", "a b", "\"quoted\"", "0", "-1", "é" * 30, "U1", "x,y", "😀", "null"]
FORMATS = ("csv", "json", "parquet")
BEYOND = datetime(9999, 6, 1, tzinfo=UTC)  # no event is of that year
Row = dict[str, Any]


def write_case(folder: Path, seed: int) -> dict[str, Any]:
    """The configuration; the log, its clicks and its tables lie in `folder`."""
    draw = random.Random(seed)
    kind = FORMATS[seed % len(FORMATS)]
    folder.mkdir(parents=True)
    rows = [_event(draw, number) for number in range(ROWS)]
    rows += [{**row, "known": row["known"] + timedelta(hours=draw.randint(0, 9))} for row in draw.sample(rows, 9)]
    rows += [{**draw.choice(rows), **bad} for bad in ({"user": None}, {"time": None}, {"position": 0})]
    draw.shuffle(rows)
    whole = next(row for row in rows if row["user"] and row["time"] and row["position"])
    _write([*rows, {**whole, "time": BEYOND}], folder / f"log.{kind}", kind)
    clicked = [row for row in rows if row["time"] is not None and draw.random() < 0.3]
    clicks = [{"id": row["id"], "at": row["time"] + timedelta(minutes=draw.randint(-5, 500))} for row in clicked]
    _write([{**click, "known": click["at"] + timedelta(hours=draw.choice([0, 0, 30]))} for click in clicks],
           folder / "clicks.parquet", "parquet")
    users = [{"user": user, "age": draw.choice([None, 18.5, 40.0, 1e9]), "vip": draw.choice([True, False, None])}
             for user in [*draw.sample(USERS, 8), USERS[0]]]
    _write(users, folder / "users.parquet", "parquet")
    return _configuration(draw, kind)


def _event(draw: random.Random, number: int) -> Row:
    """Whole seconds, so that times coincide; a tenth of the rows is known late."""
    time = START + timedelta(seconds=draw.randint(0, DAYS * 86_400 - 1) // 600 * 600)
    return {
        "id": number, "user": draw.choice(USERS), "item": draw.choice([-7, 0, 3, 2**40, *range(10, 20)]), "time": time,
        "known": time + timedelta(minutes=draw.choice([0] * 9 + [2000])), "position": draw.randint(1, 4),
        "place": draw.choice(["here", "there", "", None, " here"]), "price": draw.choice([None, -1.5, 0.0, 3.25, 1e12]),
        "tags": draw.choice([None, "a", "a|b", "b|ü|a", "|", "b||c"]), "yes": int(draw.random() < 0.3),
    }


def _write(rows: list[Row], path: Path, kind: str) -> None:
    if kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
        return
    texts = [{name: _text(value) for name, value in row.items()} for row in rows]
    with path.open("w", encoding="utf-8", newline="") as file:
        if kind == "json":
            file.writelines(json.dumps(row) + "\n" for row in texts)
            file.write('{"id": "not closed"\n')
            return
        writer = csv.writer(file)
        writer.writerow(list(texts[0]))
        writer.writerows([["" if value is None else value for value in row.values()] for row in texts])
        file.write("1,too short\n")


def _text(value: Any) -> Any:
    return value.strftime("%Y-%m-%d %H:%M:%S") if isinstance(value, datetime) else value


def _configuration(draw: random.Random, kind: str) -> dict[str, Any]:
    log: dict[str, Any] = {
        "path": f"{{data}}/log.{kind}", "format": kind, "user_id": "user", "item_id": "item", "event_time": "time",
        "known_time": "known", "position": "position", "max_bad_share": 0.2,
        "key": draw.choice([["id"], ["id", "user"]]),
        "derive": {"hour": "hour(cast(time AS TIMESTAMP))", "cheap": "coalesce(price < 1, false)"},
    }
    if kind != "parquet":
        log["schema_ddl"] = ("id BIGINT, user STRING, item BIGINT, time STRING, known STRING, position INT, "
                             "place STRING, price DOUBLE, tags STRING, yes INT")
    if kind == "csv":
        log["options"] = {"header": "true", "escape": '"'}
    label = draw.choice([{"expression": "yes = 1"}, {"clicks": {
        "path": "{data}/clicks.parquet", "on": ["id"], "event_time": "at", "known_time": "known", "window": "3h"}}])
    return {
        "name": f"random_{kind}", "log": log, "label": label, "users": {"path": "{data}/users.parquet", "key": "user"},
        "features": {"publish_every": draw.choice([0, 21_600, 86_400]), "also_fresh": draw.random() < 0.5,
                     "negative_rate": draw.choice([1.0, 0.5]), "max_key_rows": draw.choice([40, 2_000_000])},
        "fields": _fields(draw), "serve": {"parity_rows": 20},
    }


def _fields(draw: random.Random) -> list[dict[str, Any]]:
    counter = {"kind": "counter", "windows": draw.choice([["6h"], ["1d", "3d"]])}
    return [
        {"name": "user", "kind": "categorical", "side": "user", "min_count": draw.randint(1, 3)},
        {"name": "age", "kind": "numeric", "side": "user", "granularities": [2, 5]},
        {"name": "vip", "kind": "categorical", "side": "user", "key_type": "bool"},
        {"name": "item", "kind": "categorical", "side": "item", "key_type": "int64", "min_count": draw.randint(1, 3)},
        {"name": "place", "kind": "categorical", "side": "context", "min_count": 1},
        {"name": "cheap", "kind": "categorical", "side": "context", "key_type": "bool"},
        {"name": "price", "kind": "numeric", "side": "context", "granularities": [3], "log": draw.random() < 0.5},
        {"name": "hour", "kind": "numeric", "side": "context"},
        {"name": "tags", "kind": "multi_valued", "side": "context", "separator": "|", "length": 2, "min_count": 1},
        {"name": "recent", "kind": "sequence", "side": "user", "of": "item", "length": draw.randint(1, 5)},
        {"name": "of_item", "side": "item", "by": ["item"], **counter},
        {"name": "of_user", "side": "user", "by": ["user"], **counter},
        {"name": "by_age", "side": "user", "by": ["age"], "statistics": ["count"], **counter},
        {"name": "pair", "kind": "cross", "side": "cross", "parts": ["item", "hour#10"]},
        {"name": "hashed", "kind": "cross", "side": "cross", "parts": ["user", "place"], "buckets": 50},
    ]
