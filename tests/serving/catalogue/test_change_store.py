from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from serving.catalogue.change import Change, Kind
from serving.catalogue.change_store import FILE, ChangeStore

WRITER = """
import sys
from pathlib import Path
from serving.catalogue.change import Change
from serving.catalogue.change_store import ChangeStore
store = ChangeStore(Path(sys.argv[1]))
for n in range(1, 1_000_000):
    store.record([Change(item=f"i{n % 50}-{k}", kind="bid", version=n, event_time=n, arrived=n, value=str(n))
                  for k in range(3)])
    print(n, flush=True)
"""


def bid(item: str, version: int, kind: Kind = "bid") -> Change:
    return Change(item=item, kind=kind, version=version, event_time=5, arrived=6, value=str(version))


def test_only_a_later_version_changes_anything(tmp_path: Path) -> None:
    with closing(ChangeStore(tmp_path)) as store:
        assert store.record([bid("a", 2), bid("b", 1)]) == ([True, True], 2)
        assert store.record([bid("a", 2), bid("a", 1), bid("b", 2)]) == ([False, False, True], 3)
        assert [(number, change.item, change.version) for number, change in store.after(0, 10)] == [
            (1, "a", 2), (3, "b", 2)]


def test_what_nobody_would_find_again_is_not_taken(tmp_path: Path) -> None:
    with closing(ChangeStore(tmp_path)) as store:
        store.record([bid("a", 2)])
        store.check_in_place()
        (tmp_path / FILE).unlink()
        with pytest.raises(sqlite3.OperationalError, match="removed"):
            store.record([bid("b", 2)])
        assert [change.item for _, change in store.after(0, 10)] == ["a"]
        with pytest.raises(sqlite3.OperationalError, match="removed"):
            store.check_in_place()


def test_a_store_keeps_its_mark_and_one_that_begins_anew_has_another(tmp_path: Path) -> None:
    marks = list[str]()
    for _ in range(2):
        with closing(ChangeStore(tmp_path)) as one, closing(ChangeStore(tmp_path)) as other:
            marks += (one.mark, other.mark)
    assert len(set(marks)) == 1
    (tmp_path / FILE).unlink()
    with closing(ChangeStore(tmp_path)) as anew:
        assert anew.mark not in ("", marks[0])


def test_kinds_have_versions_of_their_own(tmp_path: Path) -> None:
    with closing(ChangeStore(tmp_path)) as store:
        assert store.record([bid("a", 5), bid("a", 1, "stock")])[0] == [True, True]


def test_who_reads_on_misses_nothing_and_sees_what_came_last(tmp_path: Path) -> None:
    with closing(ChangeStore(tmp_path)) as writer, closing(ChangeStore(tmp_path)) as reader:
        seen, known = 0, dict[str, int]()
        for version in range(1, 30):
            writer.record([bid(f"i{version % 4}", version), bid("always", version)])
            if version % 3 == 0:
                for number, change in reader.after(seen, 2):
                    seen, known[change.item] = number, change.version
        while rest := reader.after(seen, 2):
            for number, change in rest:
                seen, known[change.item] = number, change.version
        assert known == {"i1": 29, "i2": 26, "i3": 27, "i0": 28, "always": 29}
        assert seen == writer.last()


def test_the_file_grows_with_the_items_and_not_with_their_changes(tmp_path: Path) -> None:
    """What a later change replaces is gone with it: of each item and kind there is one row, for whoever reads on."""
    kinds: tuple[Kind, ...] = ("item", "bid", "stock")
    sizes = list[int]()
    for times in (10, 300):
        with closing(ChangeStore(tmp_path)) as store:
            first = store.last() + 1
            for version in range(first, first + times):
                store.record([bid(f"i{item}", version, kind) for item in range(100) for kind in kinds])
            assert len(store.after(0, 10_000)) == 100 * len(kinds)
        sizes.append((tmp_path / FILE).stat().st_size)
    assert sizes[1] < 1.5 * sizes[0]


def test_a_change_comes_back_as_it_was(tmp_path: Path) -> None:
    told = Change(item="é'\"", kind="item", version=2**62, event_time=-1, arrived=2**50, value='{"a": "\\u0001"}')
    with closing(ChangeStore(tmp_path)) as store:
        store.record([told])
        assert store.after(0, 1) == [(1, told)]


def test_what_a_killed_writer_acknowledged_is_there(tmp_path: Path) -> None:
    """SIGKILL between and within commits; batches are whole."""
    acknowledged = 0
    for wanted in (3, 17):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) as process:
            assert process.stdout is not None
            for line in process.stdout:
                acknowledged = int(line)
                if acknowledged >= wanted:
                    process.send_signal(signal.SIGKILL)
                    break
    with closing(ChangeStore(tmp_path)) as store:
        versions = [change.version for _, change in store.after(0, 1000)]
    assert max(versions) >= acknowledged
    assert all(versions.count(version) == 3 for version in range(1, acknowledged + 1))
