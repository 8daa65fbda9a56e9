"""`examples/first_log.ipynb` runs from its first cell to its last, and its slates beat chance by the truth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_the_notebook_runs(monkeypatch, tmp_path):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {"__name__": "__main__"}
    try:
        for cell in json.loads((ROOT / "examples" / "first_log.ipynb").read_text())["cells"]:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    finally:
        if "server" in names:
            names["server"].stop()
    random, served, best = (sum(names[part]) for part in ("drawn", "served", "best"))
    assert random < served <= best + 1e-9
    assert max(names["auc"].values()) < names["ceiling"]
