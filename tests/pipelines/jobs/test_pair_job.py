from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from contracts.artifacts import Artifacts
from contracts.features.found_crosses import FoundCross, FoundCrosses
from contracts.features.pair_graph import MANIFEST, GraphManifest
from models.pair_rates.graph import PairGraph
from pipelines.jobs import feature_job, pair_job
from tests.pipelines.jobs.small_log import config, write_log


@pytest.fixture(scope="module")
def out(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    found = Artifacts(tmp_path_factory.mktemp("out"))
    feature_job.make_features(config(), write_log(tmp_path_factory.mktemp("data")), found)
    return found


def with_pairs(*pairs: tuple[str, str]) -> Any:
    base = config()
    return base.model_copy(update={"pair_rates": base.pair_rates.model_copy(update={"pairs": pairs})})


def test_without_pairs_there_is_no_graph(out: Artifacts) -> None:
    assert pair_job.write_pair_graph(config(), out) is None
    assert not (out.pair_rates / MANIFEST).exists()


def test_the_graph_of_the_configured_pairs_is_written_and_again_the_same(out: Artifacts) -> None:
    found = pair_job.write_pair_graph(with_pairs(("user", "item"), ("place", "price#4")), out)
    assert found is not None
    assert GraphManifest.read(out.pair_rates) == found
    graph = PairGraph.read(out.pair_rates)
    assert [tuple(graph.relations[number][:2]) for number in graph.pairs] == [("user", "item"), ("place", "price#4")]
    assert pair_job.write_pair_graph(with_pairs(("user", "item"), ("place", "price#4")), out) == found


def test_a_model_of_none_writes_no_graph_of_the_pairs_that_are_named(out: Artifacts) -> None:
    named = with_pairs(("user", "item"))
    off = named.model_copy(update={"pair_rates": named.pair_rates.model_copy(update={"model": "none"})})
    assert pair_job.write_pair_graph(off, out) is None


def test_crosses_that_were_found_get_no_rate_unless_they_are_named(out: Artifacts) -> None:
    FoundCrosses(digest="d", crosses=(FoundCross(
        name="x", parts=("user", "item"), importance=1.0, gain=1.0, support=1),)).write(out.crosses)
    assert pair_job.write_pair_graph(config(), out) is None
