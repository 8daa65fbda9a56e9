"""The README's tree names every room, and nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("contracts", "pipelines", "models", "federated", "serving", "airflow_dags", "sluice", "benchmarks")


def tree() -> set[str]:
    """Folders of the tree, a room behind its floor."""
    block = (ROOT / "README.md").read_text().split("## The tree")[1].split("```")[1]
    floor, named = "", set()
    for line in block.strip().splitlines():
        indent, name = re.findall(r"^( *)(\S+)", line)[0]
        floor = floor if indent else name
        named.add(f"{floor}{name}" if indent else name)
    return named


def test_the_tree_and_the_folders_agree():
    rooms = {
        f"{path.parent.relative_to(ROOT)}/"
        for layer in LAYERS
        for path in (ROOT / layer).rglob("*.py")
    }
    assert {name for name in tree() if name.split("/")[0] in LAYERS} == rooms


def test_every_command_of_the_readme_exists():
    text = (ROOT / "README.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"\bmake ([a-z-]+)", text)):
        assert f"\n{target}:" in makefile
    from sluice.cli import app

    commands = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    assert set(re.findall(r"bin/sluice ([a-z][a-z-]*)", text)) <= commands
