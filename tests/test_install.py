"""What `make demo` installs has what the platform imports: everything but what a command asks for when it is used."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("contracts", "pipelines", "models", "federated", "serving", "sluice")
CHECKERS = {"mypy", "ruff", "grpcio-tools"}
ASKED_FOR = {"optuna": "models/tuning/job.py"}  # `sluice tune` says what to install where it is missing


def imported_at_the_top(paths: Iterable[Path]) -> dict[str, Path]:
    """Third-party packages that one of these modules imports outside its functions, with one that does."""
    found: dict[str, Path] = {}
    for path in paths:
        for node in ast.parse(path.read_text()).body:
            names = ([alias.name for alias in node.names] if isinstance(node, ast.Import) else
                     [node.module] if isinstance(node, ast.ImportFrom) and node.module else [])
            found |= {name.split(".")[0]: path for name in names}
    return {name: path for name, path in found.items() if name not in sys.stdlib_module_names and name not in LAYERS}


def required(wanted: Requirement) -> list[str]:
    """What a distribution needs; of Sluice itself as `pyproject.toml` has it now. Of those that `make test` does not
    install, as a newcomer's has none, nothing is known."""
    if wanted.name in CHECKERS:
        return []
    if wanted.name != "sluice":
        return metadata.requires(wanted.name) or []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    return [*project["dependencies"], *(line for name in wanted.extras for line in extras[name])]


def installed_by(extra: str) -> set[str]:
    """Names of the distributions that `sluice[extra]` brings, those they need included."""
    found: set[str] = set()
    todo = [Requirement(f"sluice[{extra}]")]
    while todo:
        wanted = todo.pop()
        key = f"{wanted.name.lower()}[{','.join(sorted(wanted.extras))}]"
        if key in found:
            continue
        found |= {key, wanted.name.lower().replace("_", "-")}
        asked = {"extra": ""}, *({"extra": name} for name in wanted.extras)
        for line in required(wanted):
            requirement = Requirement(line)
            if requirement.marker is None or any(requirement.marker.evaluate(one) for one in asked):
                todo.append(requirement)
    return found


def missing(imported: dict[str, Path], installed: set[str]) -> dict[str, str]:
    """Packages that no installed distribution brings."""
    distributions = metadata.packages_distributions()
    return {name: str(path.relative_to(ROOT)) for name, path in imported.items()
            if not {one.lower().replace("_", "-") for one in distributions.get(name, ())} & installed}


@pytest.mark.slow
def test_the_demo_installs_what_is_imported():
    everything = imported_at_the_top(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))
    assert missing(everything, installed_by("demo")) == ASKED_FOR


def test_the_demo_leaves_out_what_tests_and_other_commands_use():
    assert installed_by("demo") & {"ray", "optuna", "implicit", "mypy", "sphinx", "pytest", "hypothesis"} == set()
    assert installed_by("dev") >= {"ray", "optuna", "implicit", "sphinx", "pytest", "hypothesis"}


def test_the_tests_leave_out_what_checks_the_source_and_each_make_target_installs_its_own():
    assert installed_by("dev") & CHECKERS == set()
    assert installed_by("check") >= installed_by("dev") - {"sluice[dev]"} | CHECKERS
    rules = dict(re.findall(r"^([a-z-]+): (.*)$", (ROOT / "Makefile").read_text(), re.M))
    needs = {"demo": "DEMO_READY", "test": "READY", "test-all": "READY", "check": "CHECK_READY", "types": "CHECK_READY"}
    assert {name: rules[name].split()[0] for name in needs} == {name: f"$({ready})" for name, ready in needs.items()}


SERVED = ("access", "batches", "bundle", "catalogue", "console", "embedded_store", "events", "gateway", "metrics",
          "proto", "request", "response_log", "rules", "server", "stages", "vector_search", "why_not",
          "workers")  # of a server, a gateway


@pytest.mark.slow
def test_the_image_for_serving_installs_what_a_server_imports():
    modules = [".".join(path.relative_to(ROOT).with_suffix("").parts) for room in SERVED
               for path in sorted((ROOT / "serving" / room).glob("*.py")) if path.stem != "__main__"]
    script = f"import importlib, sys\nfor name in {modules!r}: importlib.import_module(name)\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True, text=True)
    loaded = [path for name in done.stdout.split() if (path := ROOT / f"{name.replace('.', '/')}.py").exists()]
    assert len(loaded) > len(modules)
    assert missing(imported_at_the_top(loaded), installed_by("serving") | installed_by("tracing")) == {}


def test_files_beside_the_modules_are_installed_with_them():
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["package-data"]
    beside = {path for layer in LAYERS for path in (ROOT / layer).rglob("*") if path.is_file()
              and path.suffix not in (".py", ".pyi", ".pyc", ".so")}
    where = {layer: LAYERS if layer == "*" else (layer,) for layer in told}
    assert beside == {path for name, globs in told.items() for layer in where[name] for one in globs
                      for path in (ROOT / layer).glob(one)}
    assert {path.parent.name for path in beside if path.name == "py.typed"} == set(LAYERS)  # callers are type-checked
