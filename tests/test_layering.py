"""Who may import whom, which heavy library belongs to which layer, and no circles."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAY_IMPORT = {
    "contracts": set(),
    "pipelines": {"contracts"},
    "models": {"contracts"},
    "federated": {"contracts", "models"},
    "serving": {"contracts", "models"},
    "sluice": {"contracts", "pipelines", "models", "federated", "serving"},
    "airflow_dags": set(),
}
HEAVY = {
    "torch": {"models", "federated", "serving"},
    "torch_geometric": {"models"},
    "pyspark": {"pipelines"},
    "faiss": {"serving"},
    "grpc": {"serving"},
    "flwr": {"federated"},
    "mlflow": set(),
    "airflow": {"airflow_dags"},
    "sklearn": set(),
    "matplotlib": set(),
}
LAYERS = [layer for layer in MAY_IMPORT if (ROOT / layer).is_dir()]


def sources(layer: str) -> list[Path]:
    return [path for path in sorted((ROOT / layer).rglob("*.py")) if "_pb2" not in path.name]


def imported(nodes: list[ast.stmt], *, at_import_time: bool) -> set[str]:
    """Dotted names imported by these statements; with `at_import_time`, function bodies are passed over."""
    names: set[str] = set()
    for node in nodes:
        if at_import_time and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            names |= {node.module or ""} | {f"{node.module}.{alias.name}" for alias in node.names}
        else:
            names |= imported(
                [n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt | ast.excepthandler)],
                at_import_time=at_import_time,
            )
    return names


def forbidden(layer: str, source: str) -> set[str]:
    """Imports of this source text that its layer may not have."""
    tree = ast.parse(source)
    tops = {name.split(".")[0] for name in imported(tree.body, at_import_time=False)}
    wrong = {top for top in tops if top in MAY_IMPORT and top != layer and top not in MAY_IMPORT[layer]}
    tops_now = {name.split(".")[0] for name in imported(tree.body, at_import_time=True)}
    return wrong | {top for top in tops_now if top in HEAVY and layer not in HEAVY[top]}


@pytest.mark.parametrize("layer", LAYERS)
def test_each_layer_imports_only_what_it_may(layer):
    found = {str(path.relative_to(ROOT)): forbidden(layer, path.read_text()) for path in sources(layer)}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("layer", "source"),
    [
        ("contracts", "import models.dnn"),
        ("pipelines", "def f():\n    from models.dnn import Dnn"),
        ("models", "import mlflow"),
        ("sluice", "import torch"),
        ("airflow_dags", "from sluice.airflow_demo import Demo"),
    ],
)
def test_a_forbidden_import_is_found(layer, source):
    assert forbidden(layer, source)


def test_a_heavy_library_may_be_imported_inside_a_function():
    assert forbidden("models", "def track():\n    import mlflow") == set()


def test_no_import_circles():
    modules = {".".join(p.relative_to(ROOT).with_suffix("").parts): p for layer in LAYERS for p in sources(layer)}
    graph = {
        name: {
            target for target in imported(ast.parse(path.read_text()).body, at_import_time=True) if target in modules
        }
        for name, path in modules.items()
    }
    graphlib.TopologicalSorter(graph).prepare()


def test_package_faces_are_empty():
    assert [str(p) for layer in LAYERS for p in (ROOT / layer).rglob("__init__.py") if p.read_text().strip()] == []


def test_no_folder_or_file_has_a_name_that_says_nothing():
    bad = {"utils", "util", "common", "helpers", "misc", "configs"}
    assert [str(p) for layer in LAYERS for p in (ROOT / layer).rglob("*") if p.stem in bad] == []


def test_the_command_loads_no_heavy_library():
    code = (
        "import sys, sluice.cli; print(sorted(m for m in sys.modules if m in {'torch', 'pyspark', 'faiss', 'mlflow'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
