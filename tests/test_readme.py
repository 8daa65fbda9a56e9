"""docs/reference/tree.md names every room and nothing that is not there; the README is short and its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("contracts", "pipelines", "models", "federated", "serving", "airflow_dags", "sluice", "benchmarks")


def block() -> list[str]:
    """Lines of the tree."""
    return (ROOT / "docs" / "reference" / "tree.md").read_text().split("```")[1].strip().splitlines()


def tree() -> list[str]:
    """Folders of the tree, rooms behind their floor, as often as they are named."""
    floor = ""
    named: list[str] = []
    for line in block():
        indent, names = re.findall(r"^( *)(\S+(?: \S+)*)", line)[0]
        floor = floor if indent else names
        named += [f"{floor}{name}" for name in names.split()] if indent else names.split()
    return named


def test_the_tree_is_seen_at_a_glance():
    assert len(block()) <= 48
    assert max(len(line) for line in block()) <= 130


def test_the_tree_and_the_folders_agree():
    rooms = {
        f"{path.parent.relative_to(ROOT)}/"
        for layer in LAYERS
        for path in (ROOT / layer).rglob("*.py")
    }
    assert sorted(name for name in tree() if name.split("/")[0] in LAYERS) == sorted(rooms)
    assert [name for name in tree() if not (ROOT / name).exists()] == []


def test_every_command_of_the_readme_exists():
    text = (ROOT / "README.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"\bmake ([a-z-]+)", text)):
        assert f"\n{target}:" in makefile
    from sluice.cli import app

    commands = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    assert set(re.findall(r"bin/sluice ([a-z][a-z-]*)", text)) <= commands


def test_the_readme_is_read_in_two_minutes():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_every_page_is_reached_from_the_index():
    index = (ROOT / "docs" / "index.md").read_text()
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    listed = [page for page in pages if page.name != "index.md" and page.parts[0] != "decisions"]
    assert [str(page) for page in listed if f"({page})" not in index] == []


def test_the_readme_and_the_first_run_show_the_same_answer():
    pages = [ROOT / "README.md", ROOT / "docs" / "start" / "first_run.md"]
    answers = [re.findall(r"^```text\n(marketplace-.*?)^```$", page.read_text(), re.S | re.M) for page in pages]
    assert answers[0] == answers[1]
    assert len(answers[0]) == 1
