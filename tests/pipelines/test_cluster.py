"""One key of 30% of the events on a standalone cluster whose Python workers are bounded in memory: what they have is
not enough for the key whole, and enough for its slices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pipelines import heavy_key
from tests.pipelines.spark_processes import cluster


@pytest.mark.slow
def test_a_key_that_is_too_much_for_a_worker_whole_is_counted_in_slices_as_the_embedded_engine_counts_it(
    tmp_path: Path,
) -> None:
    heavy_key.write_log(tmp_path)
    with cluster(tmp_path, "600m") as master:
        whole = heavy_key.features(tmp_path, master, "whole", most=heavy_key.ROWS)
        sliced = heavy_key.features(tmp_path, master, "sliced", most=heavy_key.ROWS // 100)
    embedded = heavy_key.features(tmp_path, "embedded", "embedded", most=heavy_key.ROWS)
    assert whole.returncode == 1
    assert "a Python worker has not enough memory for the rows of its task; lower features.max_key_rows" in whole.stderr
    assert sliced.returncode == 0, sliced.stderr[-3000:]
    made = [json.loads(done.stdout.splitlines()[-1])["examples"] for done in (sliced, embedded)]
    assert made[0] == made[1]
