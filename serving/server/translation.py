"""Between the wire (serving/proto/sluice.proto) and the funnel's own words (serving/request/query.py)."""

from __future__ import annotations

from contracts.errors import RequestError
from serving.proto import sluice_pb2 as pb
from serving.request.query import (
    ContextValue,
    Fallback,
    RankAnswer,
    RankedItem,
    RankQuery,
    Scalar,
    ScoreAnswer,
    ScoreQuery,
    StageReport,
    StageStatus,
)

STATUS = {
    StageStatus.COMPLETE: pb.StageReport.COMPLETE,
    StageStatus.DEGRADED: pb.StageReport.DEGRADED,
    StageStatus.SKIPPED: pb.StageReport.SKIPPED,
}
FALLBACK = {
    Fallback.NONE: pb.StageReport.NONE,
    Fallback.POPULAR: pb.StageReport.POPULAR,
    Fallback.TWO_TOWER_SCORE: pb.StageReport.TWO_TOWER_SCORE,
    Fallback.PREVIOUS_ORDER: pb.StageReport.PREVIOUS_ORDER,
    Fallback.ORGANIC_ORDER: pb.StageReport.ORGANIC_ORDER,
    Fallback.WITHOUT_REASONS: pb.StageReport.WITHOUT_REASONS,
}


def to_query(request: pb.RankRequest, default_limit: int) -> RankQuery:
    """Raises RequestError for an empty user id or an empty context value."""
    if not request.user_id:
        raise RequestError("user_id", "is empty; send any string, an unknown user is answered too")
    return RankQuery(
        user=request.user_id,
        limit=request.limit if request.HasField("limit") else default_limit,
        context={name: _value(f"context[{name}]", value) for name, value in request.context.items()},
        candidates=_candidates(request),
        filters={name: tuple(values.values) for name, values in request.filters.items()},
        recent_items=tuple(request.recent_items.item_ids) if request.HasField("recent_items") else None,
        rerank=not request.skip_rerank,
        explain=request.reasons,
        partial_ok=request.partial_ok if request.HasField("partial_ok") else True,
    )


def _candidates(request: pb.RankRequest) -> tuple[str, ...] | None:
    """None asks for retrieval; an empty list does not."""
    if request.HasField("candidate_list"):
        return tuple(request.candidate_list.item_ids)
    return tuple(request.candidates) or None


def to_score_query(request: pb.ScoreRequest) -> ScoreQuery:
    """Raises RequestError as `to_query` does."""
    if not request.user_id:
        raise RequestError("user_id", "is empty; send any string, an unknown user is answered too")
    return ScoreQuery(
        user=request.user_id, items=tuple(request.item_ids),
        context={name: _value(f"context[{name}]", value) for name, value in request.context.items()},
        features={item: {name: _value(f"features[{item}][{name}]", value) for name, value in given.values.items()}
                  for item, given in request.features.items()},
        recent_items=tuple(request.recent_items.item_ids) if request.HasField("recent_items") else None,
    )


def to_score_response(answer: ScoreAnswer, request_id: str) -> pb.ScoreResponse:
    return pb.ScoreResponse(
        request_id=request_id, bundle_version=answer.bundle_version, probabilities=answer.probabilities,
        unknown_items=answer.unknown, known_user=answer.known_user)


def _value(where: str, value: pb.Value) -> ContextValue:
    kind = value.WhichOneof("kind")
    if kind is None:
        raise RequestError(
            where, "holds no value; set text, integer, number or flag, or leave the field out"
        )
    if kind == "list":
        return tuple(_scalar(f"{where}[{place}]", one) for place, one in enumerate(value.list.values))
    return _scalar(where, value)


def _scalar(where: str, value: pb.Value) -> Scalar:
    kind = value.WhichOneof("kind")
    if kind is None or kind == "list":
        raise RequestError(where, f"holds {'a list' if kind else 'no value'} within a list; give one value each")
    result: Scalar = getattr(value, kind)
    return result


def to_value(value: ContextValue) -> pb.Value:
    if isinstance(value, tuple | list):
        return pb.Value(list=pb.ValueList(values=[to_value(one) for one in value]))
    if isinstance(value, bool):
        return pb.Value(flag=value)
    if isinstance(value, int):
        return pb.Value(integer=value)
    return pb.Value(number=value) if isinstance(value, float) else pb.Value(text=value)


def to_response(answer: RankAnswer, request_id: str, bundle_age: float) -> pb.RankResponse:
    """`bundle_age` in seconds."""
    return pb.RankResponse(
        request_id=request_id,
        bundle_version=answer.bundle_version,
        items=[_item(item) for item in answer.items],
        stages=[_stage(stage) for stage in answer.stages],
        unknown_candidates=answer.unknown_candidates,
        known_user=answer.known_user,
        bundle_age_seconds=bundle_age,
        degraded=answer.degraded,
    )


def _item(item: RankedItem) -> pb.RankedItem:
    return pb.RankedItem(
        item_id=item.item,
        probability=item.probability,
        score=item.score,
        price=item.price,
        channel=item.channel,
        stage_scores=item.stage_scores,
        reasons=[pb.Reason(field=reason.field, logit_change=reason.logit_change) for reason in item.reasons],
    )


def _stage(stage: StageReport) -> pb.StageReport:
    return pb.StageReport(
        name=stage.name,
        candidates_in=stage.candidates_in,
        candidates_out=stage.candidates_out,
        microseconds=stage.microseconds,
        status=STATUS[stage.status],
        cause=stage.cause,
        fallback=FALLBACK[stage.fallback],
    )
