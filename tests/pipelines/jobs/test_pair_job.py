from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contracts.artifacts import Artifacts
from models.pair_rates.graph import PairGraph
from pipelines.jobs import feature_job as feature_step
from pipelines.jobs import pair_job as pair_step
from tests.pipelines.jobs.test_feature_job import config, write_log


@pytest.fixture(scope="module")
def out(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    found = Artifacts(tmp_path_factory.mktemp("out"))
    feature_step.run(config(), write_log(tmp_path_factory.mktemp("data")), found)
    return found


def with_pairs(*pairs: tuple[str, str]) -> Any:
    base = config()
    return base.model_copy(update={"statistics": base.statistics.model_copy(update={"pairs": pairs})})


def test_without_pairs_there_is_no_graph(out: Artifacts) -> None:
    assert pair_step.run(config(), out) is None
    assert not (out.statistics / "manifest.json").exists()


def test_the_graph_of_the_configured_pairs_is_written_and_again_the_same(out: Artifacts) -> None:
    found = pair_step.run(with_pairs(("user", "item"), ("place", "price#4")), out)
    assert found is not None
    assert json.loads((out.statistics / "manifest.json").read_text(encoding="utf-8")) == found
    graph = PairGraph.read(out.statistics)
    assert [tuple(graph.relations[number][:2]) for number in graph.pairs] == [("user", "item"), ("place", "price#4")]
    assert pair_step.run(with_pairs(("user", "item"), ("place", "price#4")), out) == found
    assert Path(out.statistics / "edges").exists()
