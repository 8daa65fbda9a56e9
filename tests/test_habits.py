"""What all tests keep to: they import no other test and call no privates, and every source file has one by its name."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FLOORS = ("contracts", "pipelines", "models", "federated", "serving", "sluice", "benchmarks", "airflow_dags")
PUBLIC = {"_replace", "_asdict", "_fields", "_exit"}  # of named tuples and of os: documented, for all their underscore
FILES = sorted((ROOT / "tests").rglob("*.py"))


def imports_of_tests(source: str) -> set[str]:
    """Test files that this source imports, by module."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {name for name in found
            if name.startswith("tests.") and any(part.startswith("test_") for part in name.split("."))}


def privates(source: str) -> set[str]:
    """Private names of others that this source reads, writes or imports; `self._x` is its own."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) not in ("self", "cls"):
            found.add(node.attr)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in FLOORS:
            found |= {alias.name for alias in node.names}
    return {name for name in found if name.startswith("_") and not name.startswith("__")} - PUBLIC


def test_no_test_imports_another() -> None:
    found = {str(path.relative_to(ROOT)): imports_of_tests(path.read_text("utf-8")) for path in FILES}
    assert {path: names for path, names in found.items() if names} == {}


def test_no_test_calls_what_is_private() -> None:
    found = {str(path.relative_to(ROOT)): privates(path.read_text("utf-8")) for path in FILES}
    assert {path: names for path, names in found.items() if names} == {}


def test_every_source_file_has_its_test_by_name() -> None:
    sources = [path.relative_to(ROOT) for floor in FLOORS for path in (ROOT / floor).rglob("*.py")
               if path.name != "__init__.py" and "_pb2" not in path.name]
    missing = {str(path) for path in sources if not (ROOT / "tests" / path.parent / f"test_{path.name}").exists()}
    assert missing == set()


@pytest.mark.parametrize("source", [
    "from tests.models.layers.test_mlp import WIDTH", "from tests.models.layers import test_mlp",
    "import tests.models.layers.test_mlp"])
def test_an_import_of_a_test_is_found(source: str) -> None:
    assert imports_of_tests(source)
    assert not imports_of_tests(source.replace("test_mlp", "small_mlp"))


@pytest.mark.parametrize("source", [
    "store._client.search()", "from models.layers.mlp import _width", "made.head._width = 1"])
def test_a_private_name_is_found(source: str) -> None:
    assert privates(source)


def test_what_is_ones_own_or_documented_is_not_private() -> None:
    assert not privates("self._held = 1\nslot._replace(size=3)\nprint(made.__name__)\nfrom os import _exit")
