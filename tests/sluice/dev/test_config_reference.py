"""The page about the configuration, written from its own models."""

from __future__ import annotations

import re

from contracts.config.config import Config
from sluice.dev.config_reference import PAGE, page


def test_the_page_in_the_repository_is_the_one_that_the_models_give():
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_key_and_section_of_the_file_has_its_line():
    text = page()
    for name, info in Config.model_fields.items():
        assert f"| `{name}` |" in text or re.search(rf"^## `\[+{name}\]", text, re.MULTILINE), (name, info)


def test_a_key_is_told_with_type_default_limit_and_meaning():
    rows = {line.split("`")[1]: line for line in page().splitlines() if line.startswith("| `")}
    assert "| `margin` | number | `0.002` | refused when the lower 95% bound" in rows["margin"]
    assert rows["margin"].endswith("at least 0 |")
    assert '| duration | `"1d"` |' in rows["span"]
    assert "required" in rows["name"]


def test_durations_and_instants_are_named_as_people_write_them():
    text = page()
    assert "| instant |" in text
    assert "[instant, instant] or number" in text
    assert "datetime" not in text
