from __future__ import annotations

import torch

from serving.request.deadline import Deadline
from serving.request.query import StageStatus
from serving.stages.scoring_stage import cut_status, score_in_chunks


def test_chunks_cover_every_candidate_once() -> None:
    values, seen = torch.arange(7.0), []

    def score(part: slice) -> torch.Tensor:
        seen.append((part.start, part.stop))
        return values[part]

    assert score_in_chunks(7, 3, Deadline(None), score).tolist() == values.tolist()
    assert seen == [(0, 3), (3, 6), (6, 7)]


def test_an_expired_deadline_leaves_the_first_chunk() -> None:
    assert len(score_in_chunks(7, 3, Deadline(0.0), lambda part: torch.zeros(part.stop - part.start))) == 3


def test_no_candidates() -> None:
    assert len(score_in_chunks(0, 3, Deadline(None), lambda part: torch.zeros(0))) == 0


def test_a_cut_is_reported() -> None:
    assert cut_status(7, 7) == (StageStatus.COMPLETE, "")
    assert cut_status(3, 7) == (StageStatus.DEGRADED, "the deadline passed after 3 of 7 candidates")
