"""Into a real file, by writers that are killed, too."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from contracts.errors import DataError
from serving.embedded_store import database
from serving.users.embedded_publisher import publish
from serving.users.embedded_tables import FILE
from serving.users.published_users import Rows, Version, read_version
from tests import small_disk

ROWS, KILLS = 3_000, 4
ROOT = Path(__file__).parents[3]


def version(name: str, rows: int = ROWS, day: int = 5) -> Version:
    return Version(name=name, buckets=1, rows=rows, published=datetime(2026, 1, day, tzinfo=UTC))


def rows_of(name: str, count: int = ROWS) -> Rows:
    return [(f"u{user}".encode(), name) for user in range(count)]


def read(folder: Path) -> tuple[str, set[bytes], int]:
    """The version that is read, all its rows, and how many."""
    with closing(sqlite3.connect(folder / FILE)) as found:
        told = found.execute("SELECT told FROM version").fetchone()[0]
        rows = [row for (row,) in found.execute("SELECT row FROM users")]
    return read_version(told.encode()).name, set(rows), len(rows)


def test_a_version_replaces_the_one_before_and_the_file_does_not_grow(tmp_path: Path) -> None:
    assert publish(tmp_path, version("a"), iter([rows_of("a")])) is None
    assert publish(tmp_path, version("b"), iter([rows_of("b")])) == "a"
    size = (tmp_path / FILE).stat().st_size
    for name in "cdef":
        publish(tmp_path, version(name), iter([rows_of(name)]))
        assert read(tmp_path) == (name, {name.encode()}, ROWS)
    assert (tmp_path / FILE).stat().st_size == size


@pytest.mark.parametrize(("rows", "why"), [
    ([*rows_of("new", 5), (b"u1", "new")], "a key twice"), (rows_of("new", 5), "5 users of 6"),
    (rows_of("new", 7), "7 users of 6")])
def test_a_table_that_is_not_whole_changes_nothing(rows: Rows, why: str, tmp_path: Path) -> None:
    publish(tmp_path, version("old"), iter([rows_of("old")]))
    with pytest.raises(DataError, match=why):
        publish(tmp_path, version("new", 6), iter([rows]))
    assert read(tmp_path) == ("old", {b"old"}, ROWS)


def test_an_older_version_replaces_a_later_one_only_where_it_is_to(tmp_path: Path) -> None:
    publish(tmp_path, version("later", day=6), iter([rows_of("later")]))
    with pytest.raises(DataError, match=r"as of 2026-01-06 00:00:00 UTC, later than .* --older"):
        publish(tmp_path, version("older"), iter([rows_of("older")]))
    assert read(tmp_path) == ("later", {b"later"}, ROWS)
    assert publish(tmp_path, version("older"), iter([rows_of("older")]), older=True) == "later"
    assert read(tmp_path) == ("older", {b"older"}, ROWS)


def test_one_publishes_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.05)
    publish(tmp_path, version("old"), iter([rows_of("old")]))

    def rows_beside_another() -> Rows:
        with pytest.raises(DataError, match="another process writes"):
            publish(tmp_path, version("third"), iter([rows_of("third")]))
        return rows_of("second")

    publish(tmp_path, version("second"), (rows_beside_another() for _ in range(1)))
    assert read(tmp_path) == ("second", {b"second"}, ROWS)


def test_what_is_no_data_base_is_refused_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"something else" * 1000)
    with pytest.raises(DataError, match="move the file away"):
        publish(tmp_path, version("new"), iter([rows_of("new")]))


ENDLESS = """
    import itertools, sys, time
    from datetime import UTC, datetime
    from pathlib import Path
    from serving.users.embedded_publisher import publish
    from serving.users.published_users import Version

    folder, rows, waits = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "waits"

    def parts(name):
        for part in range(2):
            yield [(b"u%d" % user, name) for user in range(part, rows, 2)]
            if waits:
                print("half", flush=True)
                time.sleep(600)

    for number in itertools.count(1):
        version = Version(name=str(number), buckets=1, rows=rows, published=datetime.now(UTC))
        publish(folder, version, parts(str(number)))
        print(number, flush=True)
"""


def begun(folder: Path, waits: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(ENDLESS), str(folder), str(ROWS), waits],
                            stdout=subprocess.PIPE, text=True, cwd=ROOT)


def killed(writer: subprocess.Popen[str]) -> list[str]:
    """What it had said by then."""
    writer.send_signal(signal.SIGKILL)
    assert writer.stdout is not None
    with writer.stdout as said:
        lines = said.read().splitlines()
    assert writer.wait() == -signal.SIGKILL
    return lines


def test_a_writer_that_is_killed_half_way_leaves_the_version_before_and_the_next_one_goes_on(tmp_path: Path) -> None:
    publish(tmp_path, version("old"), iter([rows_of("old")]))
    writer = begun(tmp_path, "waits")
    assert writer.stdout is not None
    assert writer.stdout.readline() == "half\n"
    assert read(tmp_path) == ("old", {b"old"}, ROWS)
    killed(writer)
    assert read(tmp_path) == ("old", {b"old"}, ROWS)
    assert publish(tmp_path, version("next"), iter([rows_of("next")])) == "old"
    assert read(tmp_path) == ("next", {b"next"}, ROWS)


@pytest.mark.slow
def test_writers_that_are_killed_at_any_moment_leave_one_whole_version(tmp_path: Path) -> None:
    """The last that was acknowledged, or the one after it."""
    random = Random(7)
    for _ in range(KILLS):
        writer = begun(tmp_path, "goes on")
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(random.uniform(0, 0.1))
        last = int([first, *killed(writer)][-1])
        name, rows, count = read(tmp_path)
        assert (rows, count) == ({name.encode()}, ROWS)
        assert int(name) in (last, last + 1)


FULL = """
    import sys
    from pathlib import Path
    from contracts.errors import DataError
    from serving.users.embedded_publisher import publish
    from serving.users.published_users import Version
    from datetime import UTC, datetime

    def put(name, rows):
        version = Version(name=name, buckets=1, rows=rows, published=datetime.now(UTC))
        return publish(Path(sys.argv[1]), version, iter([[(b"u%d" % user, name * 500) for user in range(rows)]]))

    put("a", 100)
    try:
        put("b", 5000)
    except DataError as error:
        print("full" in str(error))
    print(put("c", 100))
"""


def test_a_full_disk_leaves_the_version_before(tmp_path: Path) -> None:
    assert small_disk.run(FULL, tmp_path / "disk", "2m").split() == ["True", "a"]
