from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks.pipelines.feature_peers import ROOT, command, environment, plan_of
from contracts.config.config import load
from contracts.errors import ConfigError

MARKETPLACE = ROOT / "examples" / "marketplace.toml"


def test_the_platform_runs_the_job_and_the_script_a_plan(tmp_path: Path):
    places = (MARKETPLACE, tmp_path / "raw", tmp_path / "out", tmp_path)
    for engine in ("embedded", "spark_local"):
        job = command(engine, *places, "2g", None)
        assert job[0] == sys.executable
        assert job[-3:] == [str(MARKETPLACE), str(tmp_path / "raw"), str(tmp_path / "out")]
    script = command("duckdb", *places, "2g", tmp_path / "python")
    assert script[0] == str(tmp_path / "python")
    plan = json.loads(Path(script[-1]).read_text(encoding="utf-8"))
    assert (plan["memory"], plan["raw"]) == ("2GB", str(tmp_path / "raw"))


def test_temporary_files_go_where_they_are_counted(tmp_path: Path):
    assert environment("embedded", tmp_path)["SLUICE_SPARK_MASTER"] == "embedded"
    assert environment("spark_local", tmp_path)["SLUICE_SPARK_MASTER"] == "local[*]"
    assert environment("duckdb", tmp_path)["TMPDIR"] == str(tmp_path)


def test_the_plan_holds_the_configurations_fields_and_windows(tmp_path: Path):
    plan = plan_of(load(MARKETPLACE), tmp_path, tmp_path, tmp_path, 2, "2GB")
    assert plan["users"]["user_id"] == 150
    assert plan["counters"]["category_clicks"] == "category"
    assert plan["counter_days"] == {"2d": 2, "7d": 7}
    assert plan["grains"]["price"] == [10, 50]
    assert plan["cross"] == ["market", "category"]
    assert plan["spans"]["train"][1] == plan["spans"]["validation"][0]


def test_another_kind_of_log_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="the script for DuckDB knows"):
        plan_of(load(ROOT / "examples" / "adult.toml"), tmp_path, tmp_path, tmp_path, 2, "2GB")
