"""What the DAGs say to the platform: every command and option is one of its own."""

from __future__ import annotations

import re
import subprocess
from datetime import date

import pytest
from airflow.sdk import DAG

from airflow_dags import backfill_features, daily_ranking, federated_rounds
from tests.airflow_dags.dag_rules import FOLDER, commands
from tests.airflow_dags.fake_platform import FakePlatform

ROOT = FOLDER.parent


def said_while_running(platform: FakePlatform, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Words that tasks put together while they run."""
    for module in (backfill_features, federated_rounds):
        monkeypatch.setattr(module, "get_current_context", dict)
    platform.variables(sluice_serving="127.0.0.1:1", sluice_answers="/answers", sluice_clicks="/clicks",
                       sluice_data="/data", sluice_runs="/runs")
    platform.answer("rank", """echo '{"bundleVersion": "shop-1"}'""")
    out = platform.registered("run")
    daily_ranking.picked_up.function(out, "5")
    daily_ranking.watch.function(["watch", "shop.toml", "--out", out], "shop-1", "0", "1")
    daily_ranking.roll_back.function(out, "shop-1")
    backfill_features.day_again.function(str(date(2026, 1, 18)), "shop.toml", out, ["--data", "/data"], "2026-01-18")
    federated_rounds.federate.function("shop.toml", "2026-01-18")
    return platform.calls


def test_every_command_and_option_is_one_of_the_platform(
    dags: dict[str, DAG], platform: FakePlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: dict[str, set[str]] = {}
    given = [words for dag in dags.values() for _, words in commands(dag)]
    for words in given + said_while_running(platform, monkeypatch):
        used.setdefault(words[0], set()).update(word for word in words if word.startswith("--"))
    assert set(used) == {"features", "quality", "pretrain", "train", "prerank", "bundle", "verify", "register",
                         "promote", "crosses", "rank", "watch", "rollback", "federate"}
    for command, options in used.items():
        help_ = subprocess.run([ROOT / ".venv" / "bin" / "python", "-m", "sluice.cli", command, "--help"], cwd=ROOT,
                               capture_output=True, text=True, check=True, env={"COLUMNS": "200", "PATH": ""}).stdout
        known = set(re.findall(r"--[a-z-]+", help_))
        assert options <= known, f"{command} has no {options - known}"
