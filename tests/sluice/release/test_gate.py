from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from contracts.artifacts import TEST_LOGITS, Artifacts
from contracts.config.days import Gate
from contracts.errors import DataError
from contracts.release.gate import Estimate, GateVerdict, MedianMilliseconds, RankingGain, RecallGain
from models.evaluation.metrics import gauc
from serving.bundle.scoring_bundle import ScoringBundle
from serving.replay.bundle_comparison import logits, read_window
from sluice.release.gate import evaluate_challenger, reasons
from tests.sluice.market_run import market_run

QUICK = Gate(draws=100, latency_requests=10, max_latency_ratio=100)
FINE = GateVerdict(
    challenger="market-2", champion="market-1",
    difference=RankingGain(figure="GAUC", value=0.001, standard_error=0.001, low=-0.001, high=0.003),
    calibration=Estimate(value=1.05, standard_error=0.1, low=0.9, high=1.3),
    milliseconds=MedianMilliseconds(challenger=2.0, champion=1.9),
    recall=RecallGain(value=-0.04, standard_error=0.01, low=-0.06, high=-0.02, clicks=500, challenger=0.4,
                      champion=0.44),
)


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Artifacts:
    return market_run(tmp_path_factory.mktemp("good"))


@pytest.fixture(scope="module")
def bad(tmp_path_factory) -> Artifacts:
    """As large a model that learned nothing."""
    return market_run(tmp_path_factory.mktemp("bad"), honest=False)


def test_the_window_is_scored_as_training_scored_it(good):
    """The first rows of the market are also its parity rows, whose logits training left."""
    window, bundle = read_window(good), ScoringBundle.load(good.bundle)
    stored = pq.read_table(good.bundle / "parity" / "rows.parquet")
    trained = np.load(good.model("dnn") / TEST_LOGITS)
    assert window.table.num_rows == 3000
    assert logits(bundle, window)[: len(trained)] == pytest.approx(trained, abs=1e-4)
    assert stored.num_rows > 0


def test_a_better_challenger_has_nothing_against_it(good, bad):
    found = evaluate_challenger(good, good.bundle, bad.bundle, QUICK, seed=0)
    window = read_window(good)
    ours, theirs = (logits(ScoringBundle.load(one.bundle), window) for one in (good, bad))
    exact = [gauc(window.labels, scores, window.users).value for scores in (ours, theirs)]
    assert exact[0] is not None
    assert exact[1] is not None
    assert found.difference is not None
    assert found.difference.value == pytest.approx(exact[0] - exact[1])
    assert found.difference.low > 0
    assert found.reasons == ()


def test_a_worse_challenger_is_refused_with_its_figures(good, bad):
    found = evaluate_challenger(good, bad.bundle, good.bundle, QUICK, seed=0)
    assert len(found.reasons) == 1
    assert "GAUC" in found.reasons[0]
    assert "below -0.002" in found.reasons[0]


def test_retrieval_that_finds_less_is_refused(tmp_path, good):
    """The same ranker behind twenty candidates of popularity alone, of eighty items."""
    narrow = market_run(tmp_path / "narrow", retrieve={
        "candidates": 20, "two_tower": 0, "item_to_item": 0, "popularity": 20})
    found = evaluate_challenger(narrow, narrow.bundle, good.bundle, QUICK, seed=0)
    assert found.recall is not None
    assert found.recall.value == pytest.approx(found.recall.challenger - found.recall.champion)
    assert found.recall.clicks > 100
    assert ["retrieval: finds" in reason for reason in found.reasons] == [True]
    back = evaluate_challenger(good, good.bundle, narrow.bundle, QUICK, seed=0)
    assert back.recall is not None
    assert back.recall.low > 0
    assert back.reasons == ()


def test_the_first_one_has_no_champion_to_beat(good):
    found = evaluate_challenger(good, good.bundle, None, QUICK, seed=0)
    assert (found.champion, found.reasons) == (None, ())


def test_probabilities_of_positives_alone_are_judged_among_the_drawn_rows(tmp_path, good):
    """The curve knows the odds among all items, the window holds one row in a thousand of those that were not taken."""
    drawn = market_run(tmp_path / "drawn", draws=0.001)
    found = evaluate_challenger(drawn, drawn.bundle, None, QUICK, seed=0)
    plain = evaluate_challenger(good, good.bundle, None, QUICK, seed=0)
    assert found.reasons == ()
    assert found.calibration is not None
    assert plain.calibration is not None
    assert found.calibration.value == pytest.approx(plain.calibration.value, rel=1e-6)


def test_what_cannot_be_compared_is_refused(tmp_path, good):
    alone = market_run(tmp_path / "alone", users=3000)  # one row a user: no ranking to compare
    found = evaluate_challenger(alone, alone.bundle, good.bundle, QUICK, seed=0)
    assert ["cannot be compared" in reason for reason in found.reasons] == [True]


def test_rows_without_features_are_an_error(tmp_path, good):
    with pytest.raises(DataError, match="run `sluice features`"):
        read_window(Artifacts(tmp_path))


@pytest.mark.parametrize(
    ("part", "change", "word"),
    [
        ("difference", {"low": -0.0021}, "GAUC"),
        ("calibration", {"low": 1.25, "value": 1.4, "high": 1.5}, "calibration"),
        ("calibration", {"low": 0.5, "value": 0.6, "high": 0.8}, "calibration"),
        ("milliseconds", {"challenger": 2.9}, "latency"),
        ("recall", {"value": -0.1, "low": -0.2, "high": -0.04}, "retrieval"),
    ],
)
def test_each_limit_refuses_alone(part, change, word):
    assert reasons(FINE, Gate()) == ()
    worse = FINE.model_copy(update={part: getattr(FINE, part).model_copy(update=change)})
    assert [reason.startswith(word) for reason in reasons(worse, Gate())] == [True]


def test_the_margin_is_a_setting():
    assert FINE.difference is not None
    worse = FINE.model_copy(update={"difference": FINE.difference.model_copy(update={"low": -0.004})})
    assert reasons(worse, Gate(margin=0.005)) == ()
