"""register, promote and rollback as commands, on a real store with really trained bundles."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from contracts.release.gate import GateSummary
from contracts.summaries import summary
from contracts.windows import HashedShares
from models.tracking.bundle_registry import CHAMPION, BundleRegistry
from sluice.cli import app
from sluice.release.registration import lineage
from tests.sluice.market_run import market_run

GATE = {"draws": 100, "latency_requests": 10, "max_latency_ratio": 100.0}


def sluice(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments)])


def champion_number(store: BundleRegistry) -> str | None:
    champion = store.by_alias("market", CHAMPION)
    return champion.number if champion else None


def test_the_lineage_spans_the_windows(tmp_path):
    out = market_run(tmp_path / "out")
    found = lineage(out, "c0ffee")
    assert (found.data_start[:10], found.data_end[:10], found.commit) == ("2026-01-01", "2026-01-08", "c0ffee")
    HashedShares(seed=1, shares={"train": 0.8, "test": 0.2}, test_rows=False).write(out.windows)
    assert lineage(out, "c0ffee").data_start == ""


@pytest.mark.slow
def test_a_version_goes_past_the_gate_and_back(tmp_path):
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    store, registry = BundleRegistry(uri), ("--registry", uri)
    bad = market_run(tmp_path / "bad", honest=False, gate=GATE)
    good = market_run(tmp_path / "good", gate=GATE)

    assert "not registered" in sluice("promote", bad.out, *registry).stderr
    for out in (bad, good):
        assert sluice("register", out.out, *registry).exit_code == 0
        done = sluice("promote", out.out, *registry, "--json")
        assert done.exit_code == 0, done.stderr
        assert json.loads(done.stdout.splitlines()[-1])["promoted"]
    champion = store.by_alias("market", CHAMPION)
    assert champion is not None
    assert champion.number == "2"
    assert "already" in sluice("promote", good.out, *registry).stdout

    refused = sluice("promote", bad.out, *registry)
    assert refused.exit_code == 3
    assert "GAUC" in refused.stderr
    assert "GAUC" in summary.required(bad.out / "gate", GateSummary, "sluice promote").reasons[0]
    assert store.by_alias("market", CHAMPION) == champion

    other = sluice("rollback", "market", *registry, "--only", "market-000000000000")
    assert (other.exit_code, champion_number(store)) == (0, "2")
    assert sluice("rollback", "market", *registry, "--only", champion.version).exit_code == 0
    assert champion_number(store) == "1"
    again = sluice("promote", good.out, *registry)
    assert again.exit_code == 3
    assert "rolled back" in again.stderr
    assert sluice("promote", good.out, *registry, "--force").exit_code == 0
    assert champion_number(store) == "2"


@pytest.mark.parametrize("command", [("rollback", "market"), ("serve", "models:/market@champion")])
def test_without_a_registry_the_cure_is_said(command, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    done = sluice(*command)
    assert done.exit_code == 2
    assert "--registry" in done.stderr
