"""`sc://`: the pipelines on a server of Spark Connect, a process of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pipelines.skewed_log import REFUSED, features, refused_address, write_log
from tests.pipelines.spark_processes import connect_server


@pytest.mark.slow
def test_spark_connect_gives_the_same_as_the_embedded_engine_and_names_unreadable_addresses(tmp_path: Path) -> None:
    write_log(tmp_path)
    with connect_server(tmp_path) as address:
        remote = features(tmp_path, address, "connect")
        refused = refused_address(tmp_path, address)
    assert refused == REFUSED
    assert remote == features(tmp_path, "embedded", "embedded")
