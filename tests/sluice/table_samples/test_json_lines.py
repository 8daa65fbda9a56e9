from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from contracts.errors import DataError
from sluice.table_samples.json_lines import json_columns


def test_keys_are_columns_and_a_key_of_several_types_is_text() -> None:
    columns, types, lines = json_columns([b'{"a": 1, "b": "x"}\n{"a": [2], "c": null}\n'], Path("t"), 10)
    assert columns == {"a": ["1", "[2]"], "b": ["x", None], "c": [None, None]}
    assert types == dict.fromkeys("abc", pa.string())
    assert lines == 2


def test_of_many_lines_about_so_many_are_kept() -> None:
    columns, _, lines = json_columns([b'{"a": 1, "b": 2}\n' * 1000], Path("t"), 100)
    assert (len(columns["a"]), lines) == (100, 1000)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [(b'[{"a": 1, "b": 2},\n{"a": 1, "b": 3}]\n', "one object a line"), (b'{"a": 1}\n' * 9, "has one key, 'a'")],
)
def test_what_is_no_table_is_refused(text: bytes, sentence: str) -> None:
    with pytest.raises(DataError, match=sentence):
        json_columns([text], Path("t.json"), 10)


def test_numbers_and_texts_that_arrow_cannot_hold_are_text() -> None:
    lines = b'{"a": 18446744073709551616, "b": "\\ud83d"}\n{"a": 1, "b": "x"}\n'
    columns, types, _ = json_columns([lines], Path("t"), 10)
    assert columns == {"a": ["18446744073709551616", "1"], "b": ["?", "x"]}
    assert types == dict.fromkeys("ab", pa.string())
