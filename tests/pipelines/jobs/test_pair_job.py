from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contracts.artifacts import Artifacts
from contracts.config.config import parse
from contracts.features.found_crosses import FoundCross, FoundCrosses
from contracts.features.pair_graph import MANIFEST, GraphManifest
from contracts.windows import TimedWindows
from models.pair_rates.graph import PairGraph
from pipelines.jobs import feature_job, pair_job
from pipelines.jobs.pair_job import chosen_pairs
from tests.pipelines.jobs.small_log import config, write_log

START, END = datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 6, tzinfo=UTC)

TEXT = """
name = "t"
[log]
path = "p"
event_time = "t"
[label]
expression = "y"
[pair_rates]
{}
[[fields]]
name = "city"
kind = "categorical"
side = "user"
[[fields]]
name = "brand"
kind = "categorical"
side = "item"
[[fields]]
name = "format"
kind = "categorical"
side = "item"
"""


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


@pytest.fixture
def searched(tmp_path: Path) -> Artifacts:
    made = Artifacts(tmp_path)
    parts = [("city", "brand", "format"), ("city", "format"), ("city", "format"), ("brand", "format")]
    crosses = tuple(FoundCross(name="x", parts=names, importance=1.0, gain=1.0, support=1) for names in parts)
    FoundCrosses(digest="d", crosses=crosses).write(made.crosses)
    TimedWindows(spans={"statistics": (START, END), "train": (END, END.replace(day=8))}).write(made.windows)
    return made


def test_crosses_of_order_two_are_taken_each_once(searched: Artifacts) -> None:
    assert chosen_pairs(parse(TEXT.format("")), searched) == [("city", "format"), ("brand", "format")]


def test_configured_pairs_go_before_crosses(searched: Artifacts) -> None:
    assert chosen_pairs(parse(TEXT.format('pairs = [["city", "brand"]]')), searched) == [("city", "brand")]


def test_none_switches_pair_rates_off(searched: Artifacts) -> None:
    assert chosen_pairs(parse(TEXT.format('model = "none"')), searched) == []


def test_no_pairs_and_no_crosses_mean_no_pairs(tmp_path: Path) -> None:
    assert chosen_pairs(parse(TEXT.format("")), Artifacts(tmp_path)) == []


def test_crosses_without_a_statistics_window_get_none(searched: Artifacts) -> None:
    TimedWindows(spans={"train": (START, END)}).write(searched.windows)
    assert chosen_pairs(parse(TEXT.format("")), searched) == []


def test_crosses_of_a_table_without_times_get_none(searched: Artifacts) -> None:
    assert chosen_pairs(parse(TEXT.format("").replace('event_time = "t"', "")), searched) == []
