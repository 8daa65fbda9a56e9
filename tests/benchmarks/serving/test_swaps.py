from __future__ import annotations

import numpy as np
import pytest

from benchmarks.serving.swaps import main, percentiles, versions
from contracts.bundle import bundle
from models.tracking.bundle_registry import BundleRegistry
from tests.benchmarks.printed_figures import all_finite, last_line, refuses


def test_percentiles_are_milliseconds_of_the_requests():
    spent = np.arange(1, 101) / 1000
    found = percentiles(spent)
    assert found["requests"] == 100
    assert found["p50"] == pytest.approx(50.5)
    assert found["p50"] < found["p95"] < found["p99"] < found["max"] == 100


def test_a_wrong_option_is_refused():
    assert refuses(main, "some/bundle", "--rate", "fast")


@pytest.mark.slow
def test_one_bundle_becomes_two_versions_of_one_name(bundle_folder, tmp_path):
    registry = BundleRegistry(f"sqlite:///{tmp_path / 'mlflow.db'}")
    one, two = versions(bundle_folder, tmp_path, registry)
    assert one.name == two.name
    assert one.version != two.version
    assert bundle.verify(tmp_path / "one").content_hash != bundle.verify(tmp_path / "two").content_hash


@pytest.mark.slow
def test_latency_during_a_swap_stands_beside_that_of_the_stretch_after_it(bundle_folder, capsys):
    main([str(bundle_folder), "--swaps", "1", "--rate", "20", "--connection-seconds", "1", "--warm-seconds", "0.5",
          "--steady-seconds", "1", "--json"])
    found = last_line(capsys.readouterr().out)
    assert all_finite(found)
    assert (found["swaps"], found["failed"]) == (1, 0)
    assert min(found["during"]["requests"], found["steady"]["requests"]) > 0
    assert found["p99_ratio"] == pytest.approx(found["during"]["p99"] / found["steady"]["p99"])
    assert found["seconds_per_swap"] > 0
