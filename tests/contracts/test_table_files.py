from __future__ import annotations

from pathlib import Path

import pytest

from contracts.table_files import is_hidden, json_object


@pytest.mark.parametrize(("within", "hidden"), [
    ("a.csv", False), ("sub/a.csv", False), ("_SUCCESS", True), (".a.csv.crc", True), ("_delta_log/0.json", True),
    (".ipynb_checkpoints/a.csv", True), ("sub/_tmp/a.csv", True), ("_day=1/a.csv", False), (".day=1/a.csv", True),
])
def test_marks_and_what_lies_in_folders_of_tools_are_hidden(within: str, hidden: bool) -> None:
    assert is_hidden(Path(within)) is hidden


@pytest.mark.parametrize(("text", "found"), [
    ('{"a": [1, null]}', {"a": [1, None]}), ("[1]", None), ('{"a":', None), ("", None),
    (r'{"a": "x\ud83d", "\uDC00": {"b": "\ud83d\ude00"}}', {"a": "x?", "?": {"b": "\U0001f600"}}),
    (r'{"a": "\\ud83d", "b": 18446744073709551616}', {"a": r"\ud83d", "b": 2**64}),
])
def test_a_line_is_an_object_that_utf8_can_hold_or_none(text: str, found: object) -> None:
    assert json_object(text) == found
