"""What pre-ranking and ranking share: scoring candidates in one go, or in chunks between which the deadline may cut in.

What a request holds is replaced as a whole after every stage, so that another thread may read it at any time. A stage
that is cut keeps what it has scored and drops the rest, which its predecessor had placed behind. Chunks are
never smaller than the slate, so one chunk is enough to answer from. Chunks cost (200 candidates in four take 1.23 times
as long as at once), so they are cut only where time is short.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from serving.request.candidates import Candidates
from serving.request.deadline import Deadline
from serving.request.query import Fallback, StageReport, StageStatus
from serving.request.request_features import Requester


class Stage(NamedTuple):
    """What a stage hands on; `scored`: of how many candidates, where it is one that scores."""

    candidates: Candidates
    status: StageStatus = StageStatus.COMPLETE
    cause: str = ""
    fallback: Fallback = Fallback.NONE
    scored: int = 0


class Held(NamedTuple):
    """What a request has so far. `vector` [d] is the user's: None where it could not be computed, NO_VECTOR where
    nobody reads it."""

    requester: Requester
    vector: np.ndarray | None
    candidates: Candidates
    unknown: list[str]
    reports: tuple[StageReport, ...]

    def after(self, stage: Stage, name: str, microseconds: int) -> Held:
        """With what a stage hands on, and its report."""
        report = StageReport(name, len(self.candidates), len(stage.candidates), microseconds, stage.status,
                             stage.cause, stage.fallback)
        return Held(self.requester, self.vector, stage.candidates, self.unknown, (*self.reports, report))


def score_in_chunks(
    count: int, chunk: int, deadline: Deadline, score: Callable[[slice], np.ndarray]
) -> np.ndarray:
    """Scores [n] of the first n <= count candidates. The first chunk is scored in any case, a further one where it
    fits when it takes as long as the last; a roomy deadline leaves all in one chunk. Raises Cancelled."""
    if count <= chunk or deadline.roomy:
        deadline.checkpoint()
        return score(slice(0, count)) if count else np.empty(0, dtype=np.float32)
    scores: list[np.ndarray] = []
    begun = time.monotonic()
    for start in range(0, count, chunk):
        if start:
            now = time.monotonic()
            if deadline.remaining() <= now - begun:
                break
            begun = now
        deadline.checkpoint()
        scores.append(score(slice(start, min(start + chunk, count))))
    return np.concatenate(scores)


def cut_status(scored: int, count: int) -> tuple[StageStatus, str]:
    """Status and cause of a stage that scored the first `scored` of `count` candidates."""
    if scored == count:
        return StageStatus.COMPLETE, ""
    return StageStatus.DEGRADED, f"the deadline passed after {scored} of {count} candidates"
