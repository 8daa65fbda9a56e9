"""The pages of docs/ are current, and what they show runs. The page of the gRPC API is run by tests/serving."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest
from pydantic import BaseModel
from typer.testing import CliRunner

from contracts.config.config import Config
from serving.access.access_file import AccessFile
from sluice.cli import app, benchmarks
from sluice.dev.config_reference import PAGE, page
from tests.docs_blocks import DOCS, FENCED, INDENTED, PAGES, blocks, commands, headings, run, shown_code

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


CONCEPTS = ("two_clocks", "bundle_and_parity", "funnel", "fives", "pcf_gnn", "fscd", "federated", "freshness")


@pytest.mark.parametrize("name", CONCEPTS)
def test_a_concept_has_its_formula_its_picture_its_cost_and_when_it_pays(name: str) -> None:
    text = (DOCS / "concepts" / f"{name}.md").read_text(encoding="utf-8")
    assert re.search(r"^\|[^\n]*\bformula\b|^\| letter \|", text, re.M)
    assert any(re.search("[─▶│]", block) for block in INDENTED.findall(FENCED.sub("", text)))
    assert re.search(r"^(?:#+ |\*\*)[^\n]*\b[Cc]osts?\b", text, re.M)
    assert re.search(r"\bpays\b", text)


ROOT = DOCS.parent
TEXTS = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
OF_TODAY = [path for path in TEXTS if path.name != "CHANGELOG.md"]


@pytest.mark.parametrize("path", OF_TODAY, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_of_a_page_is_one(path: Path) -> None:
    for command, words in commands(path.read_text(encoding="utf-8")):
        assert unknown_options(command, words) == []


@pytest.mark.parametrize("path", OF_TODAY, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_page_asks_make_for_is_made(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for code in shown_code(path.read_text(encoding="utf-8")):
        for target in re.findall(r"^(?:\S+ )*make ([a-z][a-z-]*)", code, re.M):
            assert f"\n{target}:" in makefile, target


def unknown_options(command: str, words: list[str]) -> list[str]:
    """Options among the words that the command, or its benchmark, does not take."""
    of_benchmark = command == "bench" and words != [] and not words[0].isupper()  # NAME stands for any
    known = options_of_benchmark(words[0]) if of_benchmark else options_of(command)
    return [option for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", " ".join(words)) if option not in known]


@cache
def options_of(command: str) -> frozenset[str]:
    """What `sluice COMMAND --help` names; fails where there is no such command."""
    if command == "supernode":
        return flowers_options()
    done = CliRunner().invoke(app, [command, "--help"], terminal_width=200)
    assert done.exit_code == 0, command
    return frozenset(re.findall(r"--[a-z][a-z-]*", done.stdout))


@cache
def options_of_benchmark(name: str) -> frozenset[str]:
    """What the files of the benchmark's room take, read and not imported, which would take seconds."""
    assert name in benchmarks(), f"there is no benchmark {name}"
    room = (ROOT / benchmarks()[name].replace(".", "/")).parent
    found = re.findall(r'"(--[a-z][a-z-]*)"', "".join(path.read_text("utf-8") for path in room.glob("*.py")))
    return frozenset(["--help", *found])


def test_commands_are_found_in_every_kind_of_code_and_what_they_do_not_take_is_told() -> None:
    text = """# A title

`sluice verify
OUT` and

    .venv/bin/sluice serve OUT --workers 2 &   # sluice nothing --here
    sluice features ▶ sluice bench funnel --requests 3

```sh
sluice rank --user U \\
    --nonsense | sluice prerank
```

```text
sluice told --of
```
"""
    found = dict(commands(text))
    assert found == {"verify": ["OUT"], "serve": ["OUT", "--workers", "2"], "features": [], "prerank": [],
                     "bench": ["funnel", "--requests", "3"], "rank": ["--user", "U", "--nonsense"]}
    assert {command: unknown_options(command, words) for command, words in found.items() if command != "rank"} == {
        command: [] for command in found if command != "rank"}
    assert unknown_options("rank", found["rank"]) == ["--nonsense"]
    assert unknown_options("bench", ["funnel", "--nonsense"]) == ["--nonsense"]


def flowers_options() -> frozenset[str]:
    """What `flower-supernode --help` names; `sluice supernode` takes the same."""
    flower = Path(sys.executable).parent / "flower-supernode"
    told = subprocess.run([flower, "--help"], capture_output=True, text=True, check=True).stdout
    return frozenset(re.findall(r"--[a-z][a-z-]*", told))


def links(text: str) -> list[tuple[str, str]]:
    """File and anchor of each link of a page to another, or to itself."""
    found = re.findall(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]*))?\)", text)
    return [(target, anchor) for target, anchor in found if target or anchor]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(path: Path) -> None:
    for target, anchor in links(path.read_text(encoding="utf-8")):
        to = path.parent / target if target else path
        assert to.exists(), target
        if anchor:
            assert anchor in headings(to.read_text(encoding="utf-8")), f"{target}#{anchor}"


def test_a_link_is_taken_apart_and_headings_have_the_names_that_sites_give_them() -> None:
    assert links("[a](b.md#c-d) [e](#f) [g](h.md) [i](https://j#k)") == [("b.md", "c-d"), ("", "f"), ("h.md", "")]
    assert headings("# What it *costs*, and `why`\n```sh\n# no heading\n```\n#### deep\n") == {"what-it-costs-and-why"}


def test_the_security_policy_leads_to_the_threats() -> None:
    assert "](docs/reference/threats.md)" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_source_files_that_a_page_names_exist(path: Path) -> None:
    named = re.findall(r"`((?:contracts|pipelines|models|federated|serving|sluice|airflow_dags|tests)/[\w/]+\.py)`",
                       path.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists() and name not in TO_BE_WRITTEN] == []
