"""The floor of the funnel gives the funnel's own answers."""

from __future__ import annotations

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from benchmarks.bare.bare_cascade import BareCascade
from benchmarks.serving.funnel import USERS, VALUES, world
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.stages.funnel import Funnel

LIMIT = 10


SHAPES = {"an index": (6000, "dnn", 1000), "exact search": (2000, "dnn", 9999),
          "another ranker": (2000, "dcn_v2", 9999)}


@pytest.fixture(scope="module", params=SHAPES)
def bundle(request):
    """Searched by lists of codes as a million items are, or whole; DCNv2 is asked as it serves."""
    items, ranker, flat_below = SHAPES[request.param]
    with threadpool_limits(1):
        return world(items, ranker, flat_below=flat_below)


def test_its_slates_are_those_of_the_funnel(bundle):
    funnel, bare = Funnel(bundle), BareCascade(bundle)
    for number in range(40):
        user, context = f"u{number * 37 % USERS}", {"context0": f"v{number % VALUES}"}
        answer = funnel.rank(RankQuery(user, LIMIT, context), Deadline(None))
        found = bare(user, context, LIMIT)
        assert [one.item for one in found] == [one.item for one in answer.items]
        for name in ("probability", "score"):
            told = [getattr(one, name) for one in answer.items]
            np.testing.assert_allclose([getattr(one, name) for one in found], told, rtol=1e-4)
        prices = [one.sold.price for one in answer.items if one.sold is not None]
        np.testing.assert_allclose([one.price for one in found], prices, rtol=1e-4)


def test_its_candidates_are_those_of_the_funnel_after_every_stage(bundle):
    funnel, bare = Funnel(bundle), BareCascade(bundle)
    trace: dict[str, np.ndarray] = {}
    funnel.rank(RankQuery("u5", LIMIT, {"context1": "v7"}), Deadline(None), trace)
    asked = bare.retrieve(("u5", {"context1": "v7"}))
    kept = bare.prerank(asked)
    assert asked.rows.tolist() == trace["retrieve"].tolist()
    assert sorted(kept.rows.tolist()) == sorted(trace["prerank"].tolist())
    assert len(kept.rows) == 200
