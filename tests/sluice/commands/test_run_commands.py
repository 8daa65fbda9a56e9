"""Commands of a run: where they write without --out, and what they print beside the JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from contracts.artifacts import Artifacts
from sluice.cli import app
from tests.sluice.market_run import market_run
from tests.sluice.unlike_files import no_header


def sluice(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    done = sluice("init", no_header(tmp_path), "--json")
    assert done.exit_code == 0
    return tmp_path / json.loads(done.stdout.splitlines()[-1])["config"]


@pytest.mark.parametrize("command", ["crosses", "pretrain", "train", "prerank", "bundle", "quality"])
def test_without_out_a_job_looks_below_the_configurations_name(command: str, config: Path) -> None:
    done = sluice(command, config)
    assert done.exit_code == 1
    assert "out/no_header" in done.stderr


@pytest.mark.parametrize(("device", "examples", "exit_code", "said"), [
    ("cpu", False, 1, "run `sluice features`"), ("cuda:99", True, 2, "train.device is 'cuda:99'")])
def test_what_cannot_be_trained_starts_no_processes(
    device: str, examples: bool, exit_code: int, said: str, config: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.setattr("os.execv", lambda *_: pytest.fail("processes were started"))
    text = config.read_text()
    assert "[train]" not in text
    config.write_text(f'{text}\n[train]\ndevice = "{device}"\n')
    if examples:
        Artifacts(Path("out/no_header")).encoding.mkdir(parents=True)
    done = sluice("train", config, "--workers", "2")
    assert (done.exit_code, said in done.stderr, len(done.stderr.splitlines())) == (exit_code, True, 1)


def test_a_good_bundle_is_verified_in_one_line_and_as_json(tmp_path: Path) -> None:
    out: Artifacts = market_run(tmp_path / "out")
    done = sluice("verify", out.bundle, "--json")
    assert done.exit_code == 0
    line, found = done.stdout.splitlines()
    assert "parity rows without a mismatch, index recall" in line
    assert json.loads(found)["parity"]["mismatches"] == 0


def test_costs_are_not_measured_on_what_is_no_bundle(tmp_path: Path) -> None:
    done = sluice("measure-costs", tmp_path)
    assert (done.exit_code, "is no bundle" in done.stderr) == (1, True)
