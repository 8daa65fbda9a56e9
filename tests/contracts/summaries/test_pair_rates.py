"""The summary of pre-training is read back as it was; without pairs it says so and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.features.feature_spec import PairModel
from contracts.features.pair_graph import Relation
from contracts.summaries import summary
from contracts.summaries.pair_rates import GraphFigures, PairRateBytes, PairRatesSummary, PretrainEpoch

NOTHING = PairRatesSummary(pairs=(), model="none", seconds=0.1)
FITTED = PairRatesSummary(
    pairs=(("city", "brand"),), model="pcf_gnn", seconds=1.0, best_epoch=1, validation_loss=0.5, resumed_epochs=0,
    graph=GraphFigures(nodes=9, edges=12, pairs_observed=7, relations=(Relation("city", "brand", "pair"),), rows=100,
                       clicks=5),
    bytes=PairRateBytes(own=10, table=20, dense=30), edges_per_second=100.0, digest="d",
    history=(PretrainEpoch(epoch=1, train_loss=0.4, validation_loss=0.5, seconds=1.0),),
    pair_model=PairModel(head="dot", dim=3, digest="e"),
)


@pytest.mark.parametrize("given", [NOTHING, FITTED])
def test_a_summary_is_read_back(tmp_path: Path, given: PairRatesSummary) -> None:
    summary.write(tmp_path, given)
    assert summary.read(tmp_path, PairRatesSummary) == given


def test_relations_are_written_by_name() -> None:
    assert FITTED.graph is not None
    assert FITTED.graph.plain()["relations"] == [{"left": "city", "right": "brand", "kind": "pair"}]


def test_without_pairs_there_is_nothing_more_to_say() -> None:
    assert NOTHING.plain() == {"pairs": [], "model": "none", "seconds": 0.1}
