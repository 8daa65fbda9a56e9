from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.pipelines.init import main
from benchmarks.pipelines.made_tables import access
from contracts.config.config import load


@pytest.mark.slow
def test_a_table_has_a_row_per_model_and_its_configuration_can_be_given_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(access(tmp_path / "access.csv", 800)), "--out", str(tmp_path)])
    rows = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [(row["table"], row["model"]) for row in rows] == [("access", "logistic_regression"), ("access", "dnn")]
    assert all(0 < row["test"] < 1 and row["guess_cpu_seconds"] > 0 for row in rows)
    assert load(tmp_path / "access.toml").label.expression == "ACTION = 1"
