"""The README's tree names every file, and nothing that is not there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("contracts", "pipelines", "models", "federated", "serving", "airflow_dags", "sluice", "benchmarks")


def tree() -> set[str]:
    block = (ROOT / "README.md").read_text().split("## The tree")[1].split("```")[1]
    folder, named = "", set()
    for line in block.strip().splitlines():
        indent, name = re.match(r"( *)(\S+)", line).groups()
        if indent:
            named.add(f"{folder}{name}")
        else:
            folder = name
    return named


def test_the_tree_and_the_folders_agree():
    sources = {
        str(path.relative_to(ROOT))
        for layer in LAYERS
        for path in (ROOT / layer).rglob("*.py")
        if path.name != "__init__.py" and "_pb2" not in path.name
    }
    assert {name for name in tree() if name.endswith(".py")} == sources


def test_every_command_of_the_readme_exists():
    text = (ROOT / "README.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"\bmake ([a-z-]+)", text)):
        assert f"\n{target}:" in makefile
    from sluice.cli import app

    commands = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert set(re.findall(r"bin/sluice ([a-z][a-z-]*)", text)) <= commands
