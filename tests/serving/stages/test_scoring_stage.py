from __future__ import annotations

import time

import numpy as np
import pytest

from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.candidates import Candidates
from serving.request.deadline import Cancelled, Deadline
from serving.request.query import Fallback, RankQuery, StageReport, StageStatus
from serving.stages.funnel import Funnel
from serving.stages.scoring_stage import Held, Stage, cut_status, score_in_chunks


def test_chunks_cover_every_candidate_once() -> None:
    values, seen = np.arange(7.0), []

    def score(part: slice) -> np.ndarray:
        seen.append((part.start, part.stop))
        return values[part]

    assert score_in_chunks(7, 3, Deadline(9.0), score).tolist() == values.tolist()
    assert seen == [(0, 3), (3, 6), (6, 7)]


def zeros(part: slice) -> np.ndarray:
    return np.zeros(part.stop - part.start)


def test_an_expired_deadline_leaves_the_first_chunk() -> None:
    assert len(score_in_chunks(7, 3, Deadline(0.0), zeros)) == 3


def test_a_chunk_that_would_not_fit_is_not_begun() -> None:
    """Three chunks of 0.3 s within 0.8 s less 0.1: two fit, also where a busy machine takes 50 ms more for each."""

    def slow(part: slice) -> np.ndarray:
        time.sleep(0.3)
        return zeros(part)

    assert len(score_in_chunks(9, 3, Deadline(0.8).before(0.1, 1.0), slow)) == 6


def test_with_room_for_twice_what_is_expected_there_is_one_chunk() -> None:
    seen = []

    def score(part: slice) -> np.ndarray:
        seen.append(part)
        return zeros(part)

    score_in_chunks(7, 3, Deadline(1.0).before(0.0, 0.4), score)
    assert seen == [slice(0, 7)]
    score_in_chunks(7, 3, Deadline(1.0).before(0.0, 0.6), score)
    assert len(seen) == 4


def test_a_caller_who_goes_stops_the_work_at_the_next_chunk() -> None:
    whole, scored = Deadline(10.0), []

    def score(part: slice) -> np.ndarray:
        scored.append(part)
        whole.cancel()
        return zeros(part)

    with pytest.raises(Cancelled):
        score_in_chunks(9, 3, whole.before(0.0, 100.0), score)
    assert scored == [slice(0, 3)]


def test_no_candidates() -> None:
    assert len(score_in_chunks(0, 3, Deadline(None), lambda part: np.zeros(0))) == 0


def test_a_cut_is_reported() -> None:
    assert cut_status(7, 7) == (StageStatus.COMPLETE, "")
    assert cut_status(3, 7) == (StageStatus.DEGRADED, "the deadline passed after 3 of 7 candidates")


def test_every_stage_leaves_what_it_kept_and_a_report_of_it(loaded: LoadedBundle) -> None:
    candidates = Candidates(np.arange(6), np.zeros(6, dtype=np.int8))
    requester = Funnel(loaded).stages.features.requester(RankQuery("u11", 2))
    begun = Held(requester, None, candidates, ["unknown"], ())
    kept = Stage(candidates.first(4), StageStatus.DEGRADED, "why", Fallback.PREVIOUS_ORDER)
    ended = begun.after(kept, "rank", 70).after(Stage(candidates.first(2)), "rerank", 20)
    assert ended.reports == (
        StageReport("rank", 6, 4, 70, StageStatus.DEGRADED, "why", Fallback.PREVIOUS_ORDER),
        StageReport("rerank", 4, 2, 20, StageStatus.COMPLETE, "", Fallback.NONE))
    assert (len(ended.candidates), ended.requester, ended.unknown) == (2, requester, ["unknown"])
    assert begun.reports == ()
