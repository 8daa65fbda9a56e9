from __future__ import annotations

import re

import pytest

from pipelines.sql.patterns import translated


@pytest.mark.parametrize(("pattern", "equal"), [
    (r"^[a-z]+$", r"^[a-z]+$"), (r"\d+", "[0-9]+"), (r"[\d.]", "[0-9.]"), (r"\W", "[^0-9A-Za-z_]"),
    (r"[^\s]", r"[^ \t\n\x0B\f\r]"), (r"a\.b", r"a\.b"), (r"(?:a|b)", r"(?:a|b)"), (r"\\d", r"\\d"), (r"[|]", "[|]"),
    ("日本", "日本"), (r"\p{L}", r"\p{L}"),
])
def test_classes_are_written_out(pattern: str, equal: str) -> None:
    assert translated(pattern) == equal


def test_a_point_is_no_end_of_a_line() -> None:
    assert translated("a.b") == r"a[^\n\r\x{85}\x{2028}\x{2029}]b"


@pytest.mark.parametrize("pattern", [r"(?<=a)b", "(?i)a", r"(a)\1", r"\bword\b", r"\Qa\E", "a*+", r"[\W]", r"\Z"])
def test_what_has_no_equal_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"\(\?|\\|\+"):
        translated(pattern)


@pytest.mark.parametrize("pattern", [r"\d{2}", r"[\w-]+@", r"\s*,\s*"])
def test_what_is_written_out_matches_the_same_ascii(pattern: str) -> None:
    for text in ("12", "a-b@c", "x , y", "", "_"):
        assert bool(re.search(pattern, text)) == bool(re.search(translated(pattern), text))
