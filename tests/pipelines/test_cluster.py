"""The pipelines give the same on the embedded engine and on a real standalone cluster, skewed keys included; in Apache
Spark's local mode: tests/sluice/test_engines_agree.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipelines.skewed_log import features, write_log
from tests.pipelines.spark_processes import cluster


@pytest.mark.slow
def test_two_workers_give_the_same_content_as_the_embedded_engine(tmp_path: Path) -> None:
    write_log(tmp_path)
    embedded = features(tmp_path, "embedded", "embedded")
    with cluster(tmp_path, "1g") as master:
        spread = features(tmp_path, master, "cluster")
    assert spread == embedded
    assert (tmp_path / "worker-1").exists()
    assert any((tmp_path / "worker-1").iterdir()) or any((tmp_path / "worker-2").iterdir())
