from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks.models.pair_rates_scale import synthetic
from benchmarks.scale import gpu
from benchmarks.scale.device_parts import Sizes

ROOT = Path(__file__).parents[3]
TINY = Sizes(table=500, look_ups=200, width=8, batch=64, updates=2, side=32, bytes=4096, vectors=3000, candidates=400)
# Whatever a GPU machine may lack stays away; what is left has to do.
BARE = """
import sys

for name in ("pyspark", "faiss", "flwr", "mlflow", "sklearn", "grpc", "typer", "rich", "optuna", "lightgbm", "duckdb"):
    sys.modules[name] = None
from benchmarks.scale import gpu
from tests.benchmarks.scale.test_gpu import TINY
gpu.SMALL = TINY
gpu.main(sys.argv[1:])
"""


def test_every_part_runs_with_the_same_code_on_a_cpu() -> None:
    found = gpu.measure(torch.device("cpu"), TINY, synthetic(3000, 8000), compiled=False)
    assert not [name for name, part in found.items() if "failed" in part]
    assert {"look_ups", "dnn", "dcn_v2", "fives", "pcf_gnn", "search", "pre_rank"} <= found.keys()
    assert float(found["dnn"]["share_of_multiply"] or 0) > 0
    assert float(found["search"]["recall"] or 0) > 0.9


@pytest.mark.slow
def test_it_runs_where_torch_and_its_graphs_are_alone_and_appends_a_section(tmp_path: Path) -> None:
    results = tmp_path / "results.md"
    results.write_text("# Before\n", encoding="utf-8")
    command = [sys.executable, "-c", BARE, "--device", "cpu", "--no-compile", "--results", str(results)]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert not [name for name, part in found.items() if "failed" in part]
    assert "not measured: import of faiss halted" in found["search"]["where"]
    text = results.read_text(encoding="utf-8")
    assert text.startswith("# Before\n\n## 2")
    assert f"commit {found['device']['commit']}" in text
    assert "No GPU was at hand" in text


def test_operations_of_the_products_by_hand() -> None:
    assert gpu.products_of(1) == 6 * (160 * 400 + 400 * 400 * 2 + 400)
