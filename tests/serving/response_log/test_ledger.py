"""A page says what its process took, also to who finds it afterwards."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from serving.response_log import ledger as ledgers
from serving.response_log.journal import claimed
from serving.response_log.ledger import Ledger, Served
from tests import small_disk
from tests.serving.logged_responses import NOON

SERVED = Served("shop-1", NOON)
FULL = """
import sys
from pathlib import Path
from serving.response_log import ledger as ledgers
from tests.serving.logged_responses import NOON
shared, log = map(Path, sys.argv[1:])
ledgers.SHARED = shared
served = ledgers.Served("shop-1", NOON)
early = ledgers.new(log, "one", served)
(shared / "filler").write_bytes(b"x" * 4096)
late = ledgers.new(log, "other", served)
late.take(1)
assert sorted(ledgers.pages(log)) == sorted([early.path, late.path])
assert early.path.parent == shared
assert late.path.parent == log
print(late.taken, late.writer)
early.close(remove=True)
late.close(remove=True)
print([path.name for path in [*shared.iterdir(), *log.iterdir()] if path.is_file() and path.name != "filler"])
"""


@pytest.mark.parametrize("shared", [True, False])
def test_what_was_said_is_read_by_another_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool) -> None:
    if not shared:
        monkeypatch.setattr(ledgers, "SHARED", tmp_path / "none")
    own = ledgers.new(tmp_path, "abc", SERVED)
    own.take(10)
    own.publish(4, 1)
    own.publish(3, 2)
    own.publish(3, 2)  # said again
    own.adopt(5)
    [page] = ledgers.pages(tmp_path)
    assert (page.parent == tmp_path) is not shared
    other = Ledger(page)
    assert (other.writer, other.served, other.taken, other.published) == ("abc", SERVED, 15, 7)
    other.close(remove=False)
    own.close(remove=True)
    assert list(ledgers.pages(tmp_path)) == []


def test_where_shared_memory_is_full_the_page_is_in_the_logs_folder(tmp_path: Path) -> None:
    """A write into a page without room ends its process."""
    said = small_disk.run(FULL, tmp_path / "shared", "8k", tmp_path)
    assert said == "1 other\n[]\n"


def test_a_page_for_which_there_is_no_room_leaves_no_file(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ledgers.SIZE - 1, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            Ledger(tmp_path / "page-abc", SERVED)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.iterdir())


def test_a_page_is_claimed_once_its_owner_is_done(tmp_path: Path) -> None:
    own = ledgers.new(tmp_path, "abc", SERVED)
    with claimed(own.path) as mine:
        assert not mine
    own.close(remove=False)
    with claimed(own.path) as mine:
        assert mine
    own.path.unlink()


def test_a_page_says_whose_it_is(tmp_path: Path) -> None:
    own = ledgers.new(tmp_path, "abc", SERVED)
    assert own.folder == tmp_path
    own.close(remove=True)
    long = tmp_path / "/".join(["x" * 200] * 21)
    page = Ledger(tmp_path / "page-abc", SERVED, long)  # more than a page holds
    assert (page.served, page.folder) == (ledgers.UNKNOWN, None)
    page.close(remove=True)


def test_what_another_user_or_a_link_has_put_there_is_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ledgers.new(tmp_path, "abc", SERVED)
    link = own.path.with_name(own.path.name + "d")
    link.symlink_to(own.path)
    assert list(ledgers.pages(tmp_path)) == [own.path]
    link.unlink()
    monkeypatch.setattr("os.geteuid", lambda: own.path.stat().st_uid + 1)
    assert list(ledgers.pages(tmp_path)) == []
    own.close(remove=True)


def test_folders_have_pages_of_their_own(tmp_path: Path) -> None:
    own = ledgers.new(tmp_path, "abc", SERVED)
    assert list(ledgers.pages(tmp_path / "other")) == []
    own.close(remove=True)
