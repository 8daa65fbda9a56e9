from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from serving.events.event import day, encoded, identity, link
from tests.serving.recorded_events import SECOND, START

KEY = ("request", "iid")


def test_keys_are_compared_as_text() -> None:
    assert link({"request": 7, "iid": True}, KEY) == link({"request": "7", "iid": "true"}, KEY)
    assert link({"request": "a", "iid": "b"}, KEY) != link({"request": "ab", "iid": ""}, KEY)


@given(st.text(st.characters()), st.text())
def test_keys_and_columns_are_the_json_that_stores_hold(request: str, item: str) -> None:
    """A store of an earlier release knows its events by them."""
    columns = {"request": request, "iid": item}
    assert link(columns, KEY) == json.dumps([request, item], ensure_ascii=False)
    assert encoded(columns) == json.dumps(columns, ensure_ascii=False)


def test_an_impression_is_its_key_and_its_day() -> None:
    columns = {"request": "r", "iid": "i"}
    assert day(START) == "2026-01-05"
    assert identity(columns, KEY, START) == identity(columns, KEY, START + 3600 * SECOND)
    assert identity(columns, KEY, START) != identity(columns, KEY, START + 86_400 * SECOND)
