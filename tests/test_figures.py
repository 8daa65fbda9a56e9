"""Figures of README and docs name a commit that is in the history; the README's table is a part of the results'."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.docs_blocks import DOCS, FENCED

ROOT = DOCS.parent
README, RESULTS = ROOT / "README.md", DOCS / "results.md"
OF_OTHERS = {"reference/configuration.md", "reference/command_line.md"}  # made from the code: defaults are no figures
PAGES = [README, *(path for path in sorted(DOCS.rglob("*.md")) if str(path.relative_to(DOCS)) not in OF_OTHERS)]
COMMIT = re.compile(r"(?<![\w-])(?=[0-9a-f]*[a-f])(?=[0-9a-f]*[0-9])[0-9a-f]{7,8}(?![\w-])")
MEASURED = re.compile(r"±|\b0\.\d{4}\b")


DIGITS = re.compile(r"(?<![\w-])[0-9]{8}(?![\w-])")


def commits(text: str) -> set[str]:
    """Commits that a page names; not versions of bundles, nor what is in its blocks. What has digits alone is one where
    the history knows it."""
    plain = FENCED.sub("", text)
    return set(COMMIT.findall(plain)) | {one for one in DIGITS.findall(plain) if one[:7] in history()}


@cache
def history() -> frozenset[str]:
    """Commits before this one, by their first seven letters; skips where there is no history, or a part of it."""
    done = subprocess.run(["git", "-C", ROOT, "rev-parse", "--is-shallow-repository"], capture_output=True, text=True,
                          check=False)
    if done.stdout.strip() != "false":
        pytest.skip("no whole history here: a copy without .git, or a shallow clone")
    told = subprocess.run(["git", "-C", ROOT, "rev-list", "HEAD"], capture_output=True, text=True, check=True).stdout
    return frozenset(line[:7] for line in told.splitlines())


def records(path: Path) -> list[list[str]]:
    """Rows of the page's first table that has a commit and a date."""
    text = path.read_text(encoding="utf-8")
    table = text.split("| what | ours | theirs | command | commit | date |\n")[1].split("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


@pytest.mark.parametrize("path", [README, RESULTS], ids=lambda path: path.name)
def test_a_record_has_a_command_a_commit_of_the_history_and_a_date(path: Path) -> None:
    assert len(records(path)) >= 10
    for what, ours, _, command, commit, date in records(path):
        assert ours, what
        assert re.fullmatch(r"`sluice bench [^`]+`", command), what
        assert commits(commit), what
        assert {one[:7] for one in commits(commit)} <= history(), what
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", date), what


def test_the_readmes_records_are_those_of_the_results() -> None:
    assert [row for row in records(README) if row not in records(RESULTS)] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_page_with_measured_figures_says_of_which_commit(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if MEASURED.search(FENCED.sub("", text)):
        assert {one[:7] for one in commits(text)} & history()


@pytest.mark.parametrize("path", [one for one in PAGES if one != RESULTS], ids=lambda path: str(path.relative_to(ROOT)))
def test_every_commit_that_a_page_names_is_in_the_history(path: Path) -> None:
    assert {one for one in commits(path.read_text(encoding="utf-8")) if one[:7] not in history()} == set()


def test_a_commit_is_told_from_what_looks_like_one() -> None:
    text = "at d305f041, 3e7fab0† and afa8cb2; marketplace-547f735c2e2a, 20260119, 1234567\n```text\n4bf92f35\n```\n"
    assert commits(text) == {"d305f041", "3e7fab0", "afa8cb2"}
