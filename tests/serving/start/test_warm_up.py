"""What a funnel knows of its stages once it is warm."""

from __future__ import annotations

import time
from typing import Any

import pytest

from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.deadline import Deadline
from serving.request.query import RankAnswer, RankQuery
from serving.stages.funnel import Funnel
from serving.stages.prerank import PrerankStage
from serving.stages.scoring_stage import Stage
from serving.start.warm_up import EXPLAIN_EVERY, FIRST, LAST, users, warm_up


def test_stages_take_what_the_last_requests_took_and_not_the_first(
    loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    funnel, told = Funnel(loaded), list[bool]()
    funnel.rank(RankQuery("u11", 5), Deadline(None))
    funnel.clock.tell("rank", 60.0)
    funnel.clock.tell("rank", 60.0)
    rank = funnel.rank

    def seen(query: RankQuery, deadline: Deadline) -> RankAnswer:
        told.append(query.explain)
        return rank(query, deadline)

    monkeypatch.setattr(funnel, "rank", seen)
    warm_up(funnel, loaded)
    assert 0.0 < funnel.floor < funnel.whole < 30.0
    assert [number for number, explained in enumerate(told[-LAST:]) if explained] == list(range(0, LAST, EXPLAIN_EVERY))
    assert told[0]


def test_waiting_for_the_processor_is_no_time_of_a_stage(
    loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that serve beside a fresh process go first."""
    funnel, score = Funnel(loaded), PrerankStage.run

    def interrupted(*given: Any) -> Stage:
        time.sleep(0.03)
        return score(*given)

    monkeypatch.setattr(PrerankStage, "run", interrupted)
    warm_up(funnel, loaded)
    assert 0.0 < funnel.clock.estimate("prerank") < 0.03
    for _ in range(2):
        funnel.rank(RankQuery("u11", 5), Deadline(None))
    assert funnel.clock.estimate("prerank") >= 0.03  # from then on by the clock


def test_lists_have_a_time_before_anybody_asks_for_one(loaded: LoadedBundle) -> None:
    funnel = Funnel(loaded)
    warm_up(funnel, loaded)
    assert 0.0 < funnel.clock.estimate("list") < 60.0


def test_users_of_the_bundle_or_somebody_unknown(loaded: LoadedBundle) -> None:
    assert users(loaded, 3) == [loaded.users.key(row) for row in range(3)]
    known, again = len(loaded.users), users(loaded, FIRST)
    assert len(again) == FIRST
    assert again[known : known + 3] == again[:3]
    assert len(set(again)) == min(FIRST, known)
