"""What pre-ranking and ranking share: scoring candidates in chunks between which the deadline may cut in.

A stage that is cut keeps what it has scored and drops the rest, which its predecessor had placed behind. Chunks are
never smaller than the slate, so one chunk is enough to answer from.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch

from serving.request.candidates import Candidates
from serving.request.deadline import Deadline
from serving.request.query import StageStatus


class Stage(NamedTuple):
    """What a stage hands on."""

    candidates: Candidates
    status: StageStatus = StageStatus.COMPLETE
    cause: str = ""


def score_in_chunks(
    count: int, chunk: int, deadline: Deadline, score: Callable[[slice], torch.Tensor]
) -> np.ndarray:
    """Scores [n] of the first n <= count candidates; the deadline is asked before every chunk but the first."""
    scores: list[np.ndarray] = []
    for start in range(0, count, chunk):
        if start and deadline.expired:
            break
        scores.append(score(slice(start, min(start + chunk, count))).numpy())
    return np.concatenate(scores) if scores else np.empty(0, dtype=np.float32)


def cut_status(scored: int, count: int) -> tuple[StageStatus, str]:
    """Status and cause of a stage that scored the first `scored` of `count` candidates."""
    if scored == count:
        return StageStatus.COMPLETE, ""
    return StageStatus.DEGRADED, f"the deadline passed after {scored} of {count} candidates"
