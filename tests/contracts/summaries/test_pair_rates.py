"""The summary of pre-training is read back as it was; without pairs it says so and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.features.feature_spec import PairModel
from contracts.features.pair_graph import Relation
from contracts.summaries import summary
from contracts.summaries.pair_rates import (
    GraphFigures,
    PairRateBytes,
    PairRateJudgement,
    PairRatesSummary,
    PretrainEpoch,
)

NOTHING = PairRatesSummary(pairs=(), model="none", seconds=0.1)
FITTED = PairRatesSummary(
    pairs=(("city", "brand"),), model="pcf_gnn", seconds=1.0, best_epoch=1, validation_loss=0.5, resumed_epochs=0,
    graph=GraphFigures(nodes=9, edges=12, pairs_observed=7, relations=(Relation("city", "brand", "pair"),), rows=100,
                       clicks=5),
    bytes=PairRateBytes(own=10, table=20, dense=30), edges_per_second=100.0, digest="d",
    history=(PretrainEpoch(epoch=1, train_loss=0.4, validation_loss=0.5, seconds=1.0),),
    pair_model=PairModel(head="dot", dim=3, digest="e"),
)


PAYS = PairRateJudgement(ranker="dnn", auc_with=0.72, auc_without=0.7, gain=0.02, standard_error=0.004, pays=True,
                         digest="f", seconds=2.0)
LEFT_OUT = PAYS.model_copy(update={"auc_with": 0.701, "gain": 0.001, "pays": False})


def judged(found: PairRateJudgement) -> PairRatesSummary:
    return FITTED.model_copy(update={"judgement": found})


@pytest.mark.parametrize("given", [NOTHING, FITTED, judged(PAYS)])
def test_a_summary_is_read_back(tmp_path: Path, given: PairRatesSummary) -> None:
    summary.write(tmp_path, given)
    assert summary.read(tmp_path, PairRatesSummary) == given


def test_relations_are_written_by_name() -> None:
    assert FITTED.graph is not None
    assert FITTED.graph.plain()["relations"] == [{"left": "city", "right": "brand", "kind": "pair"}]


def test_what_does_not_pay_is_not_read() -> None:
    assert [found.are_read for found in (NOTHING, FITTED, judged(PAYS), judged(LEFT_OUT))] == [False, True, True, False]


def test_a_sentence_says_what_was_found() -> None:
    assert "0.7200 with them and 0.7000 without: +0.0200 ± 0.0040" in PAYS.sentence
    assert LEFT_OUT.sentence.startswith("Pair rates are left out: a dnn")


def test_without_pairs_there_is_nothing_more_to_say() -> None:
    assert NOTHING.plain() == {"pairs": [], "model": "none", "seconds": 0.1}
