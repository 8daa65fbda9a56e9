from __future__ import annotations

import itertools

import numpy as np
import torch

from serving.bundle.loaded_bundle import LoadedBundle
from serving.replay.funnel_timing import WARM_UP, funnel_milliseconds, side_by_side, without_prerank
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.stages.prerank_scorers import TowersScorer


def test_every_arm_runs_every_repetition_and_threads_come_back() -> None:
    done: dict[str, list[int]] = {"a": [], "b": []}
    torch.set_num_threads(2)
    spent = side_by_side({name: calls.append for name, calls in done.items()}, 20)
    assert torch.get_num_threads() == 2
    for name, calls in done.items():
        assert calls == list(range(-WARM_UP, 20))
        assert len(spent[name]) == 20
        assert np.min(spent[name]) > 0


def test_what_is_counted_is_what_the_clock_says() -> None:
    ticks = itertools.count(0, 7_000)
    assert side_by_side({"a": abs, "b": abs}, 4, ticks.__next__) == {"a": [7.0] * 4, "b": [7.0] * 4}


def test_the_ranker_on_everything_is_one_of_the_arms(loaded: LoadedBundle) -> None:
    queries = [RankQuery(user="u05", limit=5), RankQuery(user="u07", limit=5)]
    found = funnel_milliseconds(loaded, {"towers": TowersScorer(loaded)}, queries, 5)
    assert found.keys() == {"towers", "full_ranker"}


def test_without_pre_ranking_nothing_is_cut_before_the_ranker(loaded: LoadedBundle) -> None:
    answer = without_prerank(loaded).rank(RankQuery(user="u05", limit=5), Deadline(None))
    stages = {stage.name: stage for stage in answer.stages}
    assert stages["prerank"].candidates_out == stages["prerank"].candidates_in > loaded.settings.prerank.keep
