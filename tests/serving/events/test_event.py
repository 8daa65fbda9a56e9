from __future__ import annotations

from serving.events.event import day, identity, link
from tests.serving.recorded_events import SECOND, START, recorded_features

FEATURES = recorded_features()


def test_keys_are_compared_as_text() -> None:
    assert link({"request": 7, "iid": True}, FEATURES) == link({"request": "7", "iid": "true"}, FEATURES)
    assert link({"request": "a", "iid": "b"}, FEATURES) != link({"request": "ab", "iid": ""}, FEATURES)


def test_an_impression_is_its_key_and_its_day() -> None:
    columns = {"request": "r", "iid": "i"}
    assert day(START) == "2026-01-05"
    assert identity(columns, FEATURES, START) == identity(columns, FEATURES, START + 3600 * SECOND)
    assert identity(columns, FEATURES, START) != identity(columns, FEATURES, START + 86_400 * SECOND)
