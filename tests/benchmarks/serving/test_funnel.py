from __future__ import annotations

import numpy as np
import pytest

from benchmarks.serving.funnel import BesideFloor, beside_floor, clock, main, measure_floor, spec, world
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.stages.funnel import Funnel
from tests.benchmarks.printed_figures import all_finite, last_line, refuses


def test_stages_stand_beside_what_no_implementation_goes_below(capsys):
    main(["--items", "2500", "--requests", "5"])
    found = last_line(capsys.readouterr().out)
    assert all_finite(found["milliseconds"])
    assert {"retrieve", "prerank", "rank", "rerank", "explain", "ranking", "whole"} == set(found["milliseconds"])
    for row in found["milliseconds"].values():
        assert 0 < row["median"] <= row["p95"]
        assert row.get("floor", 1) > 0
    for median, least, most in found["ratios"].values():
        assert 0 < least <= median <= most


@pytest.fixture(scope="module")
def bundle():
    return world(1500, "dnn")


def test_the_synthetic_bundle_answers_like_a_real_one(bundle):
    limit = bundle.settings.serve.default_limit
    response = Funnel(bundle).rank(RankQuery("u1", limit, {"context0": "v1"}), Deadline(None))
    assert len(response.items) == limit
    assert response.known_user


def test_the_floor_is_told_stage_by_stage(bundle):
    found = measure_floor(bundle, 3)
    assert set(found) == {"retrieve", "prerank", "rank", "rerank", "ranking"}
    assert found["ranking"] == pytest.approx(sum(spent for name, spent in found.items() if name != "ranking"))
    assert len(spec().fields) == 40


def test_ratios_are_taken_within_a_round():
    """The machine was twice as slow in the second one."""
    found = BesideFloor(plain=[3.0, 6.0, 4.0], explained=[4.0, 8.0, 4.0], floor=[2.0, 4.0, 2.0])
    assert found.plain_ratio == (1.5, 1.5, 2.0)
    assert found.explained_ratio.median == 2.0


def test_every_round_asks_for_everything(bundle):
    found = beside_floor(bundle, 4, rounds=2)
    assert [len(part) for part in (found.plain, found.explained, found.floor)] == [2, 2, 2]


def test_the_clock_leaves_the_warm_up_out():
    calls: list[int] = []
    spent = clock(calls.append, 20)
    assert (len(calls), len(spent)) == (22, 20)
    assert np.min(spent) >= 0


def test_wrong_options_are_refused():
    assert refuses(main, "--ranker", "oracle")
    assert refuses(main, "--items", "few")
