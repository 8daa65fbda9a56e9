"""Who may import whom, floor by floor and room by room, which heavy library belongs to which floor, and no circles."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from sluice.dev.rooms import rooms

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
    "redis": {"serving"},
    "flwr": {"federated"},
    "mlflow": set(),
    "optuna": {"models"},
    "airflow": {"airflow_dags"},
    "sklearn": set(),
    "matplotlib": set(),
}
# Room -> the rooms of its own floor that it may look into ("contracts", "sluice": the floor's own files). Rooms of
# other floors: as MAY_IMPORT says. An arrow that nothing uses any more has to go, so that the table stays the drawing.
ROOMS = {
    "benchmarks.bare": "",
    "benchmarks.billing": "serving",
    "benchmarks.federated": "",
    "benchmarks.freshness": "serving",
    "benchmarks.hostile": "",
    "benchmarks.models": "",
    "benchmarks.observability": "serving",
    "benchmarks.peers": "models",
    "benchmarks.pipelines": "peers",
    "benchmarks.scale": "models",
    "benchmarks.serving": "bare peers wire",
    "benchmarks.wire": "",
    "contracts.bundle": "config contracts features locks summaries",
    "contracts.config": "contracts",
    "contracts.features": "config contracts",
    "contracts.release": "config summaries",
    "contracts.summaries": "contracts features",
    "federated.averaging": "",
    "federated.clients": "protocol secure_aggregation",
    "federated.device": "clients privacy protocol rounds",
    "federated.flower": "clients device protocol rounds secure_aggregation",
    "federated.jobs": "clients device flower protocol rounds",
    "federated.privacy": "secure_aggregation",
    "federated.protocol": "averaging privacy secure_aggregation",
    "federated.rounds": "averaging clients privacy protocol secure_aggregation",
    "federated.secure_aggregation": "",
    "models.compiled": "",
    "models.cross_search": "distributed evaluation examples layers networks tracking training",
    "models.distributed": "compiled layers",
    "models.evaluation": "examples layers networks",
    "models.examples": "compiled",
    "models.inference": "compiled examples layers networks",
    "models.interactions": "distributed evaluation training",
    "models.jobs":
        "distributed evaluation examples inference interactions layers networks pair_rates retrieval sequences "
        "tracking training",
    "models.layers": "compiled examples",
    "models.leakage": "evaluation examples",
    "models.networks": "examples layers",
    "models.optimisation": "compiled distributed examples layers",
    "models.pair_rates": "distributed evaluation examples layers networks optimisation tracking training",
    "models.preranking": "evaluation examples layers networks optimisation pair_rates training",
    "models.retrieval": "distributed examples interactions networks sequences training",
    "models.sequences": "distributed interactions layers",
    "models.tracking": "",
    "models.training": "compiled distributed evaluation examples layers optimisation",
    "models.tuning": "distributed evaluation examples jobs networks pair_rates tracking training",
    "pipelines.cooccurrence": "encoding engine",
    "pipelines.encoding": "engine features windows",
    "pipelines.engine": "sql",
    "pipelines.features": "engine windows",
    "pipelines.ingest": "engine reading windows",
    "pipelines.jobs": "cooccurrence encoding engine features ingest negatives quality windows",
    "pipelines.marketplace": "",
    "pipelines.negatives": "engine features windows",
    "pipelines.quality": "",
    "pipelines.reading": "engine",
    "pipelines.sql": "",
    "pipelines.windows": "engine",
    "serving.access": "native",
    "serving.admission": "request",
    "serving.assembly": "bundle histories vector_search",
    "serving.balancer": "access metrics",
    "serving.batches": "access request",
    "serving.bundle": "histories vector_search",
    "serving.catalogue": "access batches bundle changing_index embedded_store histories item_counters request",
    "serving.changing_index": "bundle",
    "serving.channels": "bundle request",
    "serving.console": "access batches gateway metrics server",
    "serving.counter_snapshots": "bundle events item_counters",
    "serving.embedded_store": "",
    "serving.events": "access batches embedded_store redis_store request",
    "serving.gateway": "access batches metrics server",
    "serving.histories": "",
    "serving.item_counters": "bundle events request",
    "serving.metrics": "bundle events item_counters request response_log stages users",
    "serving.redis_store": "",
    "serving.replay": "assembly bundle histories request response_log stages",
    "serving.request": "bundle histories native",
    "serving.response_log": "request",
    "serving.rules": "bundle request",
    "serving.server":
        "access admission batches bundle catalogue counter_snapshots events item_counters metrics native request "
        "response_log stages start users why_not",
    "serving.stages": "bundle channels request rules",
    "serving.start": "bundle request stages",
    "serving.users": "bundle embedded_store events redis_store request",
    "serving.vector_search": "",
    "serving.why_not": "bundle request stages",
    "serving.workers": "access balancer server start",
    "sluice": "commands report",
    "sluice.airflow_demo": "demo forked release report run",
    "sluice.commands": "demo engines fresh_demo init out_folder release report run table_samples",
    "sluice.demo": "out_folder report run",
    "sluice.dev": "sluice",
    "sluice.engines": "airflow_demo",
    "sluice.forked": "",
    "sluice.fresh_demo": "demo report run",
    "sluice.init": "table_samples",
    "sluice.out_folder": "",
    "sluice.release": "",
    "sluice.report": "",
    "sluice.run": "release report",
    "sluice.stack": "",
    "sluice.table_samples": "",
}
LAYERS = [layer for layer in MAY_IMPORT if (ROOT / layer).is_dir()]


def sources(layer: str) -> list[Path]:
    return [path for path in sorted((ROOT / layer).rglob("*.py")) if "_pb2" not in path.name]


def imported(nodes: Iterable[ast.AST], *, at_import_time: bool) -> set[str]:
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
        ("contracts", "import models.networks.dnn"),
        ("pipelines", "def f():\n    from models.networks.dnn import Dnn"),
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


def test_rooms_look_only_into_the_rooms_of_the_table():
    drawn = {room: set(targets.split()) for room, targets in ROOMS.items()}
    found = {
        name: {target.partition(".")[2] or target for target in room.looks_into if floor(target) == floor(name)}
        for name, room in rooms().items()
    }
    assert {name: targets for name, targets in found.items() if targets or name in drawn} == drawn


def test_no_circle_of_rooms_within_a_floor():
    full = {room: {full_name(room, target) for target in targets.split()} for room, targets in ROOMS.items()}
    graphlib.TopologicalSorter(full).prepare()


def test_a_circle_of_rooms_is_found():
    with pytest.raises(graphlib.CycleError):
        graphlib.TopologicalSorter({"models.a": {"models.b"}, "models.b": {"models.a"}}).prepare()


def floor(room: str) -> str:
    return room.partition(".")[0]


def full_name(room: str, target: str) -> str:
    return target if target == floor(room) else f"{floor(room)}.{target}"


def test_no_room_is_crowded():
    assert {name: room.files for name, room in rooms().items() if room.files > 15} == {}


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
