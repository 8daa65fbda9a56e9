from __future__ import annotations

import pytest

from serving.catalogue.change import WITHDRAWN, Change, Kind, encoded


def change(value: object, kind: Kind = "item") -> Change:
    return Change(item="i", kind=kind, version=1, event_time=0, arrived=0, value=encoded(value))


def test_values_come_back_with_their_types() -> None:
    said = {"text": "é", "whole": 3, "number": 3.0, "flag": True, "list": ("a", "b")}
    found = change(said).values
    assert found == said
    assert [type(value) for value in found.values()] == [str, int, float, bool, tuple]


def test_a_withdrawal_says_nothing_of_the_item() -> None:
    assert change(WITHDRAWN).withdraws
    assert change(WITHDRAWN).values == {}
    assert not change({"withdrawn": True}).withdraws


def test_numbers() -> None:
    assert change(2, "bid").number == 2.0
    with pytest.raises(ValueError, match="JSON"):
        encoded(float("nan"))
