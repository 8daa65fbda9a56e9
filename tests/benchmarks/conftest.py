"""One tiny run of features and training, shared by all benchmarks that start from one."""

from __future__ import annotations

import io
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from benchmarks.models import seeds
from benchmarks.pipelines import features
from tests.benchmarks import tiny_market
from tests.benchmarks.printed_figures import last_line
from tests.sluice.market_run import market_run


class Run(NamedTuple):
    """The configuration's file, the run's folder, and what `features` and `seeds` printed last."""

    config: Path
    out: Path
    features: Any
    seeds: Any


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("tiny")
    config = tiny_market.write(folder / "tiny.toml")
    with redirect_stdout(io.StringIO()) as made:
        features.main(["--config", str(config), "--out", str(folder), "--memory", "1g",
                       "--millions", str(tiny_market.EVENTS / 1e6), "--engines", "embedded", "--repetitions", "1",
                       "--json"])
    out = folder / f"{tiny_market.EVENTS / 1e6:g}"
    with redirect_stdout(io.StringIO()) as trained:
        seeds.main([str(out / "config.toml"), "--data", str(out / "raw"), "--out", str(out), "--seeds", "2"])
    return Run(out / "config.toml", out, last_line(made.getvalue()), last_line(trained.getvalue()))


@pytest.fixture(scope="module")
def bundle_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small bundle that was really trained."""
    return market_run(tmp_path_factory.mktemp("market")).bundle
