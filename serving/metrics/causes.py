"""Why a stage was not whole, in few words: a label may not take as many values as there are sentences."""

from __future__ import annotations

from serving.request.query import MORE_COMES, Fallback, StageReport, StageStatus
from serving.stages.request_run import OVERRAN
from serving.stages.rerank import NO_TIME

CAUSES = ("no_time", "overran", "cut", "failed", "no_user_vector", "channel", "user_store", "events", "overload",
          "other")
BEGINNINGS = {
    NO_TIME: "no_time", OVERRAN: "overran", MORE_COMES: "overload", "the deadline passed after": "cut",
    "it failed": "failed",
    "the user's vector": "no_user_vector", "no time for channel": "channel", "channel ": "channel",
    "the store of users": "user_store", "the store's": "user_store", "the events": "events",
}


def is_degraded(stage: StageReport) -> bool:
    """Cut short, or replaced; what nobody asked for is neither."""
    return stage.status is StageStatus.DEGRADED or stage.fallback is not Fallback.NONE


def cause_of(stage: StageReport) -> str:
    """One of CAUSES."""
    return next((word for text, word in BEGINNINGS.items() if stage.cause.startswith(text)), "other")
