"""docs/concepts/federated.md: no claim without its code and its test."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_claim_names_code_and_a_test_that_are_there():
    text = (ROOT / "docs" / "concepts" / "federated.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.split("## Claims")[1].splitlines() if line.startswith("| ")]
    claims = [row for row in rows if "`" in row[1]]
    assert len(claims) > 15
    for _, code, tests in claims:
        for named in re.findall(r"`([^`]+)`", code):
            assert (ROOT / "federated" / named).exists() or (ROOT / named).exists(), named
        named_tests = re.findall(r"`([^`]+)`", tests)
        assert named_tests
        assert all((ROOT / "tests" / "federated" / named).exists() for named in named_tests), named_tests
