"""docs/concepts/federated.md: no claim without its code and its test."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "concepts" / "federated.md").read_text(encoding="utf-8")
CLAIMS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.split("## Claims")[1].splitlines()
    if line.startswith("| ") and not line.startswith("| claim")
]


@cache
def functions_of(path):
    return {node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.FunctionDef)}


def test_there_are_claims():
    assert len(CLAIMS) > 30


@pytest.mark.parametrize(("claim", "code", "tests"), CLAIMS, ids=[claim[:40] for claim, *_ in CLAIMS])
def test_a_claim_names_code_and_tests_that_are_there(claim, code, tests):
    files, named = re.findall(r"`([^`]+)`", code), re.findall(r"`([^`:]+)::(\w+)`", tests)
    assert files
    assert named
    assert tests.count("`") == 2 * len(named)
    for file in files:
        assert (ROOT / "federated" / file).is_file() or (ROOT / file).is_file(), file
    for file, test in named:
        assert test in functions_of((ROOT / "tests" / "federated" / file).resolve()), test


def test_each_phase_of_a_round_is_in_the_picture_of_what_each_knows():
    phases = TEXT.split("## A round")[1].split("Masks come from")[0]
    assert all(f"| {phase} |" in phases for phase in ("keys", "shares", "union", "agree, open", "choose", "train"))
