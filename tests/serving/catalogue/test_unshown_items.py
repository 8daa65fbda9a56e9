from __future__ import annotations

import pytest

from serving.catalogue import unshown_items
from serving.catalogue.unshown_items import UnshownItems, UnshownState


def test_the_latest_is_named_and_what_is_shown_again_counts_no_more() -> None:
    found = UnshownItems()
    found.publish()
    assert found.state == UnshownState(0, "")
    for item, why in (("a", "no room"), ("b", "no number"), ("a", "no room")):
        found.add(item, why)
    assert found.state.items == 0  # not published yet
    found.publish()
    assert found.state == UnshownState(2, "'a': no room")
    found.remove(["a", "c"])
    found.publish()
    assert found.state == UnshownState(1, "'b': no number")
    found.remove(["b"])
    found.publish()
    assert found.state == UnshownState(0, "")


def test_no_more_than_so_many_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unshown_items, "MOST", 3)
    found = UnshownItems()
    for number in range(9):
        found.add(f"i{number}", "no room")
    found.remove(["i0"])
    found.publish()
    assert found.state == UnshownState(3, "'i8': no room")


def test_the_log_tells_the_first_and_twice_as_many(caplog: pytest.LogCaptureFixture) -> None:
    found = UnshownItems()

    def fail(until: int) -> int:
        for number in range(until):
            found.add(f"i{number}", "no room")
            found.publish()
        return len(caplog.records)

    assert fail(100) == 7  # 1, 2, 4, ... 64
    found.remove([f"i{number}" for number in range(100)])
    found.publish()
    assert fail(1) == 8
