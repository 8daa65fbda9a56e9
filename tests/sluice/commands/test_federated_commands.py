"""Commands of federated training: what they read from the command line. What they do is told in tests/federated."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from federated.flower import supernode
from sluice.cli import app

MOVIELENS = Path(__file__).parents[3] / "examples" / "movielens_100k.toml"


def sluice(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_deployment_that_was_never_run_is_named(tmp_path: Path) -> None:
    done = sluice("federate", MOVIELENS, "--out", tmp_path, "--deployed", "cpp2")
    assert done.exit_code == 1
    assert str(tmp_path) in done.stderr
    assert "Traceback" not in done.stderr


def test_a_node_gets_the_options_of_flowers_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr(supernode, "run", asked.append)
    options = ["--insecure", "--superlink", "127.0.0.1:9092", "--node-config", "partition-id=0"]
    assert sluice("supernode", *options).exit_code == 0
    assert asked == [options]
