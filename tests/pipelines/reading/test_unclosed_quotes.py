from __future__ import annotations

import pytest

from pipelines.reading.unclosed_quotes import swallowed_rows, too_long, unclosed

ROWS = "".join(f"u{row},i{row},{row % 2}\n" for row in range(30))


@pytest.mark.parametrize("first", ['u1,"i1,0\n', "i1,0\n"])  # a record, and a value
def test_rows_behind_the_first_line_are_counted(first: str) -> None:
    assert swallowed_rows(first + ROWS, 3, ",") == 30
    assert swallowed_rows(first + ROWS.replace("u", '"a, b"'), 3, ",") == 30


@pytest.mark.parametrize("text", [
    "one line", "u1,i1,0\nu2,i2,1\n", "A tale.\n" + 40 * "Once, there was a king.\n",
    "{\n" + 40 * '"key": 1,\n' + "}", "a,b,c\n" + 20 * "u,i,0\nIt was, and so on, or not, a text\n",
])
@pytest.mark.parametrize("fields", [2, 3])
def test_a_text_of_several_lines_is_no_rows(text: str, fields: int) -> None:
    assert swallowed_rows(text, fields, ",") == 0


@pytest.mark.parametrize("start", ['3,"4', '"4'])
def test_the_sentence_names_the_line_and_the_cure(start: str) -> None:
    sentence = str(unclosed("log.csv", start, 7, ["a,b\n", "1,4\n", '3,"4\r\n', "5,6\n"]))
    assert sentence.startswith(f"log.csv: line 3 ({start!r}) opens a quote that is not closed there, and 7 rows")
    assert "remove the quote, or double it" in sentence
    assert "a line ('elsewhere')" in str(unclosed("log.csv", "elsewhere", 7, []))


def test_a_record_that_is_too_long_is_named_with_its_line() -> None:
    lines = ["a,b\n", '1,"4\n', '5"\n', '3,"4\n', *(40_000 * ["5,6\n"])]
    assert "log.csv: line 4 begins a record of more than 8 MiB" in str(too_long("log.csv", "8 MiB", lines, ",", '"'))
    assert "a record is longer than 8 MiB" in str(too_long("log.csv", "8 MiB", lines[:3], ",", '"'))
