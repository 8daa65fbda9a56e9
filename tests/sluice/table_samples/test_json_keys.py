from __future__ import annotations

import json

from sluice.table_samples.json_keys import json_keys


def test_plain_keys_become_texts_and_nested_ones_are_left() -> None:
    cells = [json.dumps({"device": "phone", "age": 3, "ok": True, "tags": [1]}), '{"device": null}', "", None]
    assert json_keys(cells) == {"device": ["phone", "", "", ""], "age": ["3", "", "", ""], "ok": ["true", "", "", ""]}


def test_other_texts_have_none() -> None:
    assert json_keys(["{curly", "{more"]) == {}
    assert json_keys(["red", '{"a": 1}']) == {}
    assert json_keys(["[1, 2]"]) == {}
    assert json_keys([]) == {}


def test_a_key_that_sql_could_not_quote_is_left() -> None:
    assert json_keys([json.dumps({"it's": 1, "fine": 2})] * 5) == {"fine": ["2"] * 5}
