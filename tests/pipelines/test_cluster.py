"""One key of 30% of the events on a standalone cluster whose Python workers are bounded in memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pipelines import heavy_key
from tests.pipelines.spark_processes import cluster


@pytest.mark.slow
def test_workers_too_small_for_parts_put_together_count_the_slices_of_a_heavy_key_as_the_embedded_engine_counts_it(
    tmp_path: Path,
) -> None:
    heavy_key.write_log(tmp_path)
    with cluster(tmp_path, "600m") as master:
        together = heavy_key.features(tmp_path, master, "together", parts="64m")
        apart = heavy_key.features(tmp_path, master, "apart", parts="2m")
    embedded = heavy_key.features(tmp_path, "embedded", "embedded", parts="2m")
    assert together.returncode == 1
    assert "a Python worker has not enough memory for the rows of its task" in together.stderr
    assert apart.returncode == 0, apart.stderr[-3000:]
    made = [json.loads(done.stdout.splitlines()[-1])["examples"] for done in (apart, embedded)]
    assert made[0] == made[1]
