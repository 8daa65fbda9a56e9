"""The pages of docs/ are current, and what they show runs. The page of the gRPC API is run by tests/serving."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pydantic import BaseModel
from typer.testing import CliRunner

from contracts.config.config import Config
from serving.access.access_file import AccessFile
from sluice.cli import app, benchmarks
from sluice.dev.config_reference import PAGE, page
from tests.docs_blocks import DOCS, PAGES, blocks, run

WITHOUT_A_SERVER = [name for name in PAGES if blocks(name, "python") and name != "reference/grpc.md"]
TO_BE_WRITTEN = {"models/networks/wide_and_deep.py"}  # by a reader of docs/how-to/add_a_model.md
WRITTEN = "python -m sluice.dev.config_reference"


def test_the_configuration_reference_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), f"run {WRITTEN}"


def test_the_reference_names_every_section_and_key() -> None:
    text = page()
    for name, info in Config.model_fields.items():
        assert f"`{name}`" in text or f"[{name}]" in text, name
        section = info.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            assert [key for key in section.model_fields if f"`{key}`" not in text] == []


@pytest.mark.parametrize("name", WITHOUT_A_SERVER)
def test_the_python_of_a_page_runs(name: str) -> None:
    run(name)


def test_the_toml_of_the_pages_is_accepted_by_the_configuration() -> None:
    base = tomllib.loads("name = 'x'\nlog = {path = 'p', user_id = 'u', item_id = 'item_id', event_time = 't'}\n"
                         "label = {expression = 'c'}\n")
    fields = [{"name": "item_id", "kind": "categorical", "side": "item"}]
    found = [tomllib.loads(block) for name in PAGES for block in blocks(name, "toml")]
    assert found
    for part in found:
        if "tokens" in part:
            AccessFile.model_validate(part)
            continue
        Config.model_validate({**base, **part, "fields": [*fields, *part.get("fields", [])]})


@pytest.mark.parametrize("name", PAGES)
def test_every_command_of_a_page_is_one(name: str) -> None:
    for block in [*blocks(name, "bash"), *blocks(name, "sh")]:
        for command, options in re.findall(r"\bsluice ([a-z][a-z-]*)((?:\s+[^\n]*)?)", block):
            done = CliRunner().invoke(app, [command, "--help"], terminal_width=200)
            assert done.exit_code == 0, command
            if command == "bench":  # its options are the benchmark's
                assert options.split()[0] in benchmarks(), options
                continue
            known = flowers_options() if command == "supernode" else done.stdout
            for option in re.findall(r"(--[a-z-]+)", options):
                assert option in known, f"{command} has no {option}"


def flowers_options() -> str:
    """What `flower-supernode --help` prints; `sluice supernode` takes the same."""
    flower = Path(sys.executable).parent / "flower-supernode"
    return subprocess.run([flower, "--help"], capture_output=True, text=True, check=True).stdout


ROOT = DOCS.parent
TEXTS = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", path.read_text(encoding="utf-8")):
        assert (path.parent / target).exists(), target


def test_the_security_policy_leads_to_the_threats() -> None:
    assert "](docs/reference/threats.md)" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_source_files_that_a_page_names_exist(path: Path) -> None:
    named = re.findall(r"`((?:contracts|pipelines|models|federated|serving|sluice|airflow_dags|tests)/[\w/]+\.py)`",
                       path.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists() and name not in TO_BE_WRITTEN] == []
