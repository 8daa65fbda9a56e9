"""Between the wire (serving/proto/sluice.proto) and the funnel's own words (serving/request/query.py)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from contracts.errors import RequestError
from serving.proto import sluice_pb2 as pb
from serving.request.query import (
    ContextValue,
    Fallback,
    PageAnswer,
    PageQuery,
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
        features=_features(request.features),
        bids={item: given.bid for item, given in request.features.items() if given.HasField("bid")},
    )


def to_page_query(request: pb.RankRequest, default_limit: int) -> PageQuery:
    """A query per placement. Raises RequestError as `to_query` does, and for what placements say themselves."""
    for field in ("limit", "candidates", "candidate_list", "filters"):
        if any(set_.name == field for set_, _ in request.ListFields()):
            raise RequestError(field, "is set beside placements, each of which says its own; leave it out")
    whole = to_query(request, default_limit)
    listed = {item for placement in request.placements for item in placement.candidate_list.item_ids}
    for item in whole.features:
        if item not in listed:
            raise RequestError(f"features[{item}]", "describes an item that is no placement's candidate; name it in "
                                                    "the `candidate_list` of one as well")
    queries = tuple(_placed(whole, placement, f"placements[{number}]", default_limit)
                    for number, placement in enumerate(request.placements))
    return PageQuery(tuple(placement.name for placement in request.placements), queries)


def _placed(whole: RankQuery, placement: pb.Placement, where: str, default_limit: int) -> RankQuery:
    listed = tuple(placement.candidate_list.item_ids) if placement.HasField("candidate_list") else None
    own = {name: _value(f"{where}.context[{name}]", value) for name, value in placement.context.items()}
    return replace(
        whole, limit=placement.limit if placement.HasField("limit") else default_limit, candidates=listed,
        filters={name: tuple(values.values) for name, values in placement.filters.items()},
        context={**whole.context, **own},
        features={item: whole.features[item] for item in listed or () if item in whole.features})


def _candidates(request: pb.RankRequest) -> tuple[str, ...] | None:
    """None asks for retrieval; an empty list does not."""
    if request.HasField("candidate_list"):
        return tuple(request.candidate_list.item_ids)
    return tuple(request.candidates) or None


def _features(described: Mapping[str, pb.Features]) -> dict[str, dict[str, ContextValue]]:
    return {item: {name: _value(f"features[{item}][{name}]", value) for name, value in given.values.items()}
            for item, given in described.items()}


def to_score_query(request: pb.ScoreRequest) -> ScoreQuery:
    """Raises RequestError as `to_query` does."""
    if not request.user_id:
        raise RequestError("user_id", "is empty; send any string, an unknown user is answered too")
    return ScoreQuery(
        user=request.user_id, items=tuple(request.item_ids),
        context={name: _value(f"context[{name}]", value) for name, value in request.context.items()},
        features=_features(request.features),
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


def to_response(answer: RankAnswer | PageAnswer, request_id: str, bundle_age: float) -> pb.RankResponse:
    """`bundle_age` in seconds."""
    if isinstance(answer, PageAnswer):
        return _page_response(answer, request_id, bundle_age)
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


def _page_response(page: PageAnswer, request_id: str, bundle_age: float) -> pb.RankResponse:
    first = page.slates[0]
    return pb.RankResponse(
        request_id=request_id, bundle_version=first.bundle_version, known_user=first.known_user,
        bundle_age_seconds=bundle_age, degraded=any(slate.degraded for slate in page.slates),
        placements=[_slate(name, slate) for name, slate in zip(page.names, page.slates, strict=True)])


def _slate(name: str, slate: RankAnswer) -> pb.PlacementResponse:
    return pb.PlacementResponse(
        name=name, items=[_item(item) for item in slate.items], stages=[_stage(stage) for stage in slate.stages],
        unknown_candidates=slate.unknown_candidates, degraded=slate.degraded)


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
