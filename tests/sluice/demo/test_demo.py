"""`sluice demo` and `sluice run` as a user types them."""

from __future__ import annotations

import io
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from rich.console import Console
from typer.testing import CliRunner

from contracts.errors import SluiceError
from contracts.summaries.bundle import ParityFigures
from contracts.summaries.demo import ServingFigures
from contracts.summaries.run import RunSummary
from sluice.cli import app
from sluice.demo import demo as demo_module
from sluice.demo.demo import look_next, require_sound
from sluice.demo.in_two_processes import Beyond
from tests.docs_blocks import commands

ROOT = Path(__file__).parents[3]


def sluice(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sluice.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=900)


def outcome(errors: int, mismatches: int) -> RunSummary:
    return RunSummary(
        name="marketplace", serving=ServingFigures(requests=800, errors=errors, p50_ms=4.0, p99_ms=9.0),
        parity=ParityFigures(rows=512, mismatches=mismatches, max_logit_difference=0.0))


@pytest.mark.parametrize(
    ("errors", "mismatches", "part"),
    [(3, 0, "3 of 800 requests"), (0, 2, "2 of 512 parity rows"), (1, 1, "1 of 800 requests")],
)
def test_a_demo_with_failed_requests_or_other_scores_exits_1_with_one_sentence(
    monkeypatch, tmp_path, errors, mismatches, part
):
    found = outcome(errors, mismatches)
    monkeypatch.setattr("sluice.demo.demo.run_demo", lambda *arguments: found)
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path), "--json"])
    assert done.exit_code == 1
    assert json.loads(done.stdout) == found.plain()
    assert part in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_sound_demo_is_let_through():
    sound = outcome(0, 0)
    require_sound(sound.serving, sound.parity)


def test_a_demo_without_requests_or_a_bundle_is_not_sound():
    with pytest.raises(SluiceError, match="no requests"):
        require_sound(None, outcome(0, 0).parity)


def in_two(monkeypatch: pytest.MonkeyPatch, beyond: Beyond) -> None:
    """A run that two processes have made."""
    monkeypatch.setattr(demo_module.in_two_processes, "run_to_models", lambda *given, **named: (outcome(0, 0), beyond))
    monkeypatch.setattr(demo_module.jobs, "run_to_bundle", lambda *given, **named: outcome(0, 0))


@pytest.mark.parametrize("keep_serving", [True, False])
def test_a_demo_that_fails_beside_its_server_leaves_none_that_nobody_was_told_of(monkeypatch, tmp_path, keep_serving):
    done: list[str] = []
    server = SimpleNamespace(target="nowhere", stop=lambda: done.append("stopped"))
    lane = MagicMock()
    lane.__enter__.return_value.wait.side_effect = SluiceError("the process beside this one died")
    lane.__exit__.return_value = False
    for name, made in (("SideLane", lane), ("ServerProcess", server), ("_simulate", None), ("_evaluated", None)):
        monkeypatch.setattr(demo_module, name, lambda *given, made=made, **named: made)
    in_two(monkeypatch, Beyond())
    with pytest.raises(SluiceError, match="the process beside"):
        demo_module.run_demo(tmp_path / "out", None, keep_serving, Console(quiet=True))
    assert done == ["stopped"]


@pytest.mark.parametrize("quick", [True, False])
def test_both_demos_end_with_three_lines_on_what_to_look_at_next(monkeypatch, tmp_path, quick):
    out, page = tmp_path / "out", tmp_path / "out" / "report.html"
    lane = MagicMock()
    lane.__exit__.return_value = False
    for name, made in (("SideLane", lane), ("ServerProcess", MagicMock(target="nowhere")), ("_simulate", None),
                       ("_evaluated", outcome(0, 0)), ("_with_crosses", outcome(0, 0))):
        monkeypatch.setattr(demo_module, name, lambda *given, made=made, **named: made)
    in_two(monkeypatch, Beyond())
    monkeypatch.setattr("sluice.report.report.write_report", lambda folder: page)
    said = io.StringIO()
    demo_module.run_demo(out, None, False, Console(file=said, width=80), quick=quick)
    last = said.getvalue().splitlines()[-3:]
    assert last == list(look_next(out, page))
    assert [line.split(".")[0] for line in last] == ["1", "2", "3"]
    assert str(page) in last[0]


def test_what_to_look_at_next_can_be_typed_as_it_stands():
    said = "".join(f"    {line}\n" for line in look_next(Path("out/demo"), Path("out/demo/report.html")))
    named = [command for command, _ in commands(said.replace(", then ", "\n    "))]
    assert named == ["serve", "rank", "init", "run"]
    for command, words in commands(said.replace(", then ", "\n    ")):
        told = CliRunner().invoke(app, [command, "--help"], terminal_width=200)
        assert told.exit_code == 0
        assert [word for word in words if word.startswith("--") and word not in told.stdout] == []


@pytest.fixture(scope="module")
def demo(tmp_path_factory) -> tuple[Path, dict[str, Any]]:
    """A small demo, run whole: its folder and its summary."""
    out = tmp_path_factory.mktemp("demo") / "out"
    done = sluice("demo", "--events", "40000", "--out", str(out), "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads((out / "summary.json").read_text())
    assert json.loads(done.stdout.splitlines()[-1])["seconds"] == found["seconds"]
    return out, found


@pytest.mark.slow
def test_every_model_lies_between_chance_and_the_oracle(demo):
    models = demo[1]["models"]
    assert set(models) == {"popularity", "logistic_regression", "dnn", "dcn_v2", "din"}
    for figures in models.values():
        assert 0.5 < figures["auc"] < figures["oracle_auc"]
        expected = (figures["auc"] - 0.5) / (figures["oracle_auc"] - 0.5)
        assert figures["share_of_oracle"] == pytest.approx(expected)


@pytest.mark.slow
def test_served_slates_beat_random_ones_and_lose_value_in_known_stages(demo):
    slate = demo[1]["slate"]
    for kind in ("clicks", "value"):
        assert 0 < slate[kind]["random"] < slate[kind]["funnel"] < 1
    assert sum(slate["loss"].values()) + slate["value"]["funnel"] == pytest.approx(1.0, abs=0.02)


@pytest.mark.slow
def test_the_server_answers_every_request_with_the_scores_of_training(demo):
    out, found = demo
    assert found["serving"]["requests"] >= 500
    assert found["serving"]["errors"] == 0
    assert found["parity"]["rows"] > 0
    assert found["parity"]["mismatches"] == 0
    assert CliRunner().invoke(app, ["verify", str(out / "bundle")]).exit_code == 0


@pytest.mark.slow
def test_some_planted_crosses_are_found_and_pay(demo):
    crosses = demo[1]["crosses"]
    assert 0 < crosses["found"] <= crosses["planted"]
    assert crosses["recall"] == pytest.approx(crosses["found"] / crosses["planted"])
    assert crosses["share_of_oracle"]["with"] > crosses["share_of_oracle"]["without"]


@pytest.mark.slow
def test_pair_rates_are_compared_with_every_baseline(demo):
    pair_rates = demo[1]["pair_rates"]
    assert set(pair_rates["zero_bucket_mse"]) == {"pcf_gnn", "factorisation", "table", "mean"}
    assert set(pair_rates["auc"]) == {"none", "table", "factorisation", "pcf_gnn"}
    assert pair_rates["bytes"]["pcf_gnn"] < pair_rates["bytes"]["dense"]
    assert all(auc > 0.5 for auc in pair_rates["auc"].values())


@pytest.mark.slow
def test_federated_rounds_end_without_drop_outs_and_within_a_known_epsilon(demo):
    federated = demo[1]["federated"]
    assert 0 < federated["auc"]["cpp2"] < 1
    assert federated["bytes_per_client_round"]["cpp2"] > 0
    assert federated["epsilon"]["cpp2"] == pytest.approx(math.log(15), abs=1e-3)
    assert federated["seconds_per_round"] > 0
    assert federated["dropouts"] == 0


@pytest.mark.slow
def test_the_pre_ranker_beats_the_dot_product_with_fewer_fields_than_there_are(demo):
    prerank = demo[1]["prerank"]
    for name in ("fscd", "dot_product", "full_ranker"):
        assert {"recall", "hit_rate", "auc", "us_per_1000", "funnel_ms"} <= prerank[name].keys()
    assert prerank["fscd"]["recall"] > prerank["dot_product"]["recall"]
    assert prerank["full_ranker"]["recall"] == 1.0
    assert 0 < prerank["fields_kept"] < prerank["fields_all"]
    assert sum(point["chosen"] for point in prerank["frontier"]) == 1
    assert prerank["slates"]["lost"] == pytest.approx(
        1 - prerank["slates"]["fscd"] / prerank["slates"]["full_ranker"])


@pytest.mark.slow
def test_the_report_is_there_and_a_folder_of_somebody_else_is_refused(demo):
    assert (demo[0] / "report.html").exists()
    assert CliRunner().invoke(app, ["demo", "--events", "40000", "--out", str(ROOT / "contracts")]).exit_code == 1


@pytest.mark.slow
@pytest.mark.skipif("MOVIELENS_100K" not in os.environ, reason="MOVIELENS_100K names no folder with u.data")
def test_a_real_log_becomes_a_bundle_that_verifies(tmp_path):
    out = tmp_path / "movielens"
    data = os.environ["MOVIELENS_100K"]
    done = sluice("run", "examples/movielens_100k.toml", "--data", data, "--out", str(out))
    assert done.returncode == 0, done.stderr
    found = json.loads((out / "summary.json").read_text())
    assert found["features"]["ingest"]["rows_in"] == 100_000
    assert all(figures["auc"] > 0.6 for figures in found["models"].values())
    assert set(found["train"]["freshness"]) == {"published", "fresh"}
    assert sluice("verify", str(out / "bundle")).returncode == 0
