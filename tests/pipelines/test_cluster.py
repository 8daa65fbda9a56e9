"""Counts of a key of 30% of the events on a standalone cluster whose Python workers are bounded in memory; the whole of
`sluice features` there: `make cluster-test`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pipelines.heavy_counts import SLICED, TOGETHER, WHOLE
from tests.pipelines.heavy_key import TOO_MUCH
from tests.pipelines.spark_processes import ROOT, cluster


def counted(master: str) -> dict[str, tuple[str | None, str | None]]:
    """(content hash, sentence of what fails) by way; a process of its own, which holds one Spark context."""
    command = [sys.executable, "-m", "tests.pipelines.heavy_counts", master]
    environment = os.environ | {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return {way: (made, said) for way, (made, said) in json.loads(done.stdout.splitlines()[-1]).items()}


@pytest.mark.slow
def test_workers_too_small_for_a_heavy_key_count_its_slices_as_the_embedded_engine_counts_the_key(
    tmp_path: Path,
) -> None:
    with cluster(tmp_path, "600m") as master:
        found = counted(master)
    for way in (WHOLE, TOGETHER):
        made, said = found[way]
        assert made is None
        assert TOO_MUCH in str(said)
    embedded = counted("embedded")
    assert found[SLICED] == embedded[SLICED] == embedded[WHOLE]
    assert embedded[SLICED][0] is not None
