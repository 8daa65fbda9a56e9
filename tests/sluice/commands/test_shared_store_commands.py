from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from typer.testing import CliRunner

from benchmarks.freshness.redis_process import RedisProcess
from contracts.artifacts import READ_UNTIL, RECENT_ITEMS, USER, Artifacts
from contracts.features.feature_spec import FeatureField, FeatureSpec
from serving.embedded_store.database import opened
from serving.events.event_store import FILE, SCHEMA
from sluice.cli import app
from tests.serving.running_redis import needs_redis


def a_run(folder: Path, day: int = 5) -> Artifacts:
    """Of two users, as of that day of January 2026."""
    import datetime

    import pyarrow as pa
    import pyarrow.parquet as pq

    out = Artifacts(folder)
    for made in (out.encoding, out.online_users):
        made.mkdir(parents=True)
    field = FeatureField(name="age", kind="numeric", side="user", edges={2: (3.0,)})
    FeatureSpec(fields=(field,), has_bid=False).write(out.encoding)
    at = datetime.datetime(2026, 1, day, tzinfo=datetime.UTC)
    table = {USER: ["a", "b"], "age": [1.0, None], RECENT_ITEMS: [["i"], []], READ_UNTIL: [at, at]}
    pq.write_table(pa.table(table), out.online_users / "part.parquet")
    return out


@needs_redis
def test_features_are_published_and_events_replayed(tmp_path: Path) -> None:
    a_run(tmp_path / "out")
    with RedisProcess(tmp_path) as store:
        done = CliRunner().invoke(app, ["publish-features", str(tmp_path / "out"), "--store", store.address, "--json"])
        assert done.exit_code == 0, done.output
        told = json.loads(done.stdout.splitlines()[-1])
        assert (told["rows"], told["published"]) == (2, "2026-01-05T00:00:00Z")
        opened(tmp_path / "fresh" / FILE, SCHEMA).close()
        done = CliRunner().invoke(app, ["replay-events", str(tmp_path / "fresh"), "--stream", store.address])
        assert done.stdout.startswith("host-")


def test_features_are_published_into_a_folder(tmp_path: Path) -> None:
    a_run(tmp_path / "out")
    words = ["publish-features", str(tmp_path / "out"), "--store", str(tmp_path / "fresh"), "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout.splitlines()[-1])["rows"] == 2
    with closing(sqlite3.connect(tmp_path / "fresh" / "users.db")) as found:
        assert [user for (user,) in found.execute("SELECT user FROM users ORDER BY user")] == [b"a", b"b"]


def test_older_features_are_published_where_the_command_says_so(tmp_path: Path) -> None:
    codes: list[int] = []
    runs: list[tuple[int, list[str]]] = [(6, []), (5, []), (5, ["--older"])]
    for day, words in runs:
        out = a_run(tmp_path / f"out{len(codes)}", day).out
        done = CliRunner().invoke(app, ["publish-features", str(out), "--store", str(tmp_path / "fresh"), *words])
        codes.append(done.exit_code)
    assert codes == [0, 1, 0]
    assert "users as of 2026-01-05" in done.stdout


def test_what_is_no_address_is_said() -> None:
    done = CliRunner().invoke(app, ["publish-features", "out", "--store", "redis://me:secret@store"])
    assert done.exit_code == 2
    assert "secret" not in done.output
