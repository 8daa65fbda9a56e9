"""The console's page is whole in one file, and so is what the report takes of it."""

from __future__ import annotations

import re

from serving.console.look import look, page, tables


def test_the_page_has_what_it_shares_with_the_report() -> None:
    assert look() in page()
    assert tables() in page()
    assert "/* look.css */" not in page()


def test_it_loads_nothing_from_elsewhere_and_names_what_is_typed() -> None:
    text = page()
    assert re.findall(r"(?:src|href)=|@import|url\((?!#)|https?://(?!www\.w3\.org/2000/svg)", text) == []
    typed = set(re.findall(r"<(?:input|select) id=\"(\w+)\"", text))
    assert typed == set(re.findall(r"<label for=\"(\w+)\"", text))
