"""Which escapes are characters: test_text_files.py has the values of Apache Spark."""

from __future__ import annotations

import io

import pytest

from pipelines.reading import csv_escapes
from pipelines.reading.csv_escapes import UNIT, EscapedText, OneCharacter, Uncommented


def rewritten(text: bytes, size: int, multiline: bool = False) -> bytes:
    stream = EscapedText(io.BytesIO(text), ",", '"', "\\", multiline, "log.csv")
    return b"".join(iter(lambda: stream.read(size), b""))


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("block", [1, 5, 1000])
def test_characters_are_doubled_whatever_the_size_of_the_parts(
    size: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_escapes, "BLOCK", block)
    text = b'1,a\\b,"c\\"d"\n"e\\f",2,\n\n3,4,5'
    assert rewritten(text, size) == b'1,a\\\\b,"c\\"d"\n"e\\\\f",2,\n\n3,4,5'
    plain = b"1,2\r\n3,4\r\n"
    assert rewritten(plain, size) == plain


def test_a_quoted_value_holds_a_lines_end_where_lines_may_be_several() -> None:
    assert rewritten(b'"a\n\\b",1\n', 100, multiline=True) == b'"a\n\\\\b",1\n'


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("block", [1, 2, 5, 1000])
def test_a_long_separator_becomes_one_character_whatever_the_size_of_the_parts(
    size: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_escapes, "BLOCK", block)
    stream = OneCharacter(io.BytesIO(b"1::a:b::3\n2::::4\n"), "::")
    assert b"".join(iter(lambda: stream.read(size), b"")).decode() == f"1{UNIT}a:b{UNIT}3\n2{UNIT}{UNIT}4\n"


@pytest.mark.parametrize("size", [1, 3, 1000])
@pytest.mark.parametrize("block", [1, 2, 5, 1000])
def test_comments_are_empty_lines_whatever_the_size_of_the_parts(
    size: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_escapes, "BLOCK", block)
    text = io.BytesIO(b'#a\n1,#2\r\n#b "\r\n"#c",3\n\n#')
    stream = Uncommented(text, "#", ",", '"', "\\", multiline=False)
    assert b"".join(iter(lambda: stream.read(size), b"")) == b'\n1,#2\r\n\r\n"#c",3\n\n'
