"""A demo's run in two processes: what is beyond the run is in its record once it is there, nothing where unwanted."""

from __future__ import annotations

import sys
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from contracts.artifacts import Artifacts
from contracts.summaries.run import RunSummary
from sluice.demo import in_two_processes
from sluice.demo.demo import demo_config
from sluice.demo.in_two_processes import Beyond, get_ready


def done(value: Any) -> Future[Any]:
    piece: Future[Any] = Future()
    piece.set_result(value)
    return piece


def test_what_is_beyond_a_run_comes_into_its_record() -> None:
    rounds = SimpleNamespace(federated="side by side", settings={"cpp2": "figures"})
    found = Beyond(done(rounds), done("pair rates")).of_run(RunSummary(name="marketplace"))
    assert (found.federated, found.settings, found.pair_rates) == ("side by side", {"cpp2": "figures"}, "pair rates")


def test_a_run_without_anything_beyond_stays_as_it_is() -> None:
    run = RunSummary(name="marketplace")
    assert Beyond().of_run(run) is run


def test_what_is_imported_ahead_is_what_is_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setattr(in_two_processes, "LATER", ("nothing_of_that_name.part", "xml.dom.pulldom"))
    monkeypatch.delitem(sys.modules, "xml.dom.pulldom", raising=False)
    get_ready(demo_config(None), Artifacts(tmp_path))
    assert "xml.dom.pulldom" in sys.modules
