"""A page says what its process took, also to who finds it afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from serving.response_log import ledger as ledgers
from serving.response_log.journal import claimed
from serving.response_log.ledger import Ledger, Served
from tests.serving.logged_responses import NOON

SERVED = Served("shop-1", NOON)


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
