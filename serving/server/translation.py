"""Between the wire (serving/proto/sluice.proto) and the funnel's own words (serving/request/query.py)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from contracts.config.stages import Serve
from contracts.errors import RequestError
from contracts.shown import short
from serving.proto import sluice_pb2 as pb
from serving.request.message_bounds import at_most, check_rank_counts, check_score_counts, text, texts
from serving.request.query import (
    ContextValue,
    Fallback,
    PageAnswer,
    PageQuery,
    RankAnswer,
    RankedItem,
    RankQuery,
    ScoreAnswer,
    ScoreQuery,
    StageReport,
    StageStatus,
)
from serving.request.wire_values import ValueRoom, values_of
from serving.why_not.why_not_run import Explained

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
    Fallback.BUNDLE_ROW: pb.StageReport.BUNDLE_ROW,
}


def to_query(request: pb.RankRequest, serve: Serve, room: ValueRoom | None = None) -> RankQuery:
    """Raises RequestError for an empty user id or an empty context value, OutOfBounds for too much of anything, also
    of what there is no `room` for."""
    check_rank_counts(request, serve)
    room = room or ValueRoom()
    if not request.user_id:
        raise RequestError("user_id", "is empty; send any string, an unknown user is answered too")
    return RankQuery(
        user=request.user_id,
        limit=request.limit if request.HasField("limit") else serve.default_limit,
        context=room.take("context", values_of("context", request.context, serve)),
        candidates=_candidates(request, serve),
        filters=_filters("filters", request.filters, serve),
        excluded=_filters("excluded", request.excluded, serve),
        ranges=_ranges("ranges", request.ranges, serve),
        recent_items=_recent(request, serve),
        rerank=not request.skip_rerank,
        explain=request.reasons,
        partial_ok=request.partial_ok if request.HasField("partial_ok") else True,
        features=_features(request.features, serve, room),
        bids={item: given.bid for item, given in request.features.items() if given.HasField("bid")},
    )


def to_page_query(request: pb.RankRequest, serve: Serve) -> PageQuery:
    """A query per placement. Raises what `to_query` does, and RequestError for what placements say themselves."""
    room = ValueRoom()
    whole = to_query(request, serve, room)
    for field in ("limit", "candidates", "candidate_list", "filters", "excluded", "ranges"):
        if any(set_.name == field for set_, _ in request.ListFields()):
            raise RequestError(field, "is set beside placements, each of which says its own; leave it out")
    listed = {item for placement in request.placements for item in placement.candidate_list.item_ids}
    for item in whole.features:
        if item not in listed:
            raise RequestError(f"features[{short(item)}]", "describes an item that is no placement's candidate; name "
                                                           "it in the `candidate_list` of one as well")
    queries = tuple(_placed(whole, placement, f"placements[{number}]", serve, room)
                    for number, placement in enumerate(request.placements))
    return PageQuery(tuple(placement.name for placement in request.placements), queries)


def _placed(whole: RankQuery, placement: pb.Placement, where: str, serve: Serve, room: ValueRoom) -> RankQuery:
    text(f"{where}.name", placement.name, serve)
    context = values_of(f"{where}.context", placement.context, serve)
    has_list = placement.HasField("candidate_list")
    listed = texts(f"{where}.candidate_list", placement.candidate_list.item_ids, serve) if has_list else None
    return replace(
        whole, limit=placement.limit if placement.HasField("limit") else serve.default_limit, candidates=listed,
        filters=_filters(f"{where}.filters", placement.filters, serve),
        excluded=_filters(f"{where}.excluded", placement.excluded, serve),
        ranges=_ranges(f"{where}.ranges", placement.ranges, serve),
        context={**whole.context, **room.take(f"{where}.context", context)},
        features={item: whole.features[item] for item in listed or () if item in whole.features})


def _candidates(request: pb.RankRequest, serve: Serve) -> tuple[str, ...] | None:
    """None asks for retrieval; an empty list does not."""
    if request.HasField("candidate_list"):
        return texts("candidate_list", request.candidate_list.item_ids, serve)
    return texts("candidates", request.candidates, serve) or None


def _recent(request: pb.RankRequest | pb.ScoreRequest, serve: Serve) -> tuple[str, ...] | None:
    has_list = request.HasField("recent_items")
    return texts("recent_items", request.recent_items.item_ids, serve) if has_list else None


def _filters(where: str, filters: Mapping[str, pb.Values], serve: Serve) -> dict[str, tuple[str, ...]]:
    found = {}
    for name, given in filters.items():
        here = f"{where}[{short(name)}]"
        at_most(here, given.values, serve.max_values, "max_values")
        found[text(where, name, serve)] = texts(here, given.values, serve)
    return found


def _ranges(where: str, ranges: Mapping[str, pb.Range], serve: Serve) -> dict[str, tuple[float, float]]:
    """Bounds that are left out are infinite."""
    return {text(where, name, serve): (one.at_least if one.HasField("at_least") else -math.inf,
                                       one.at_most if one.HasField("at_most") else math.inf)
            for name, one in ranges.items()}


def _features(
    described: Mapping[str, pb.Features], serve: Serve, room: ValueRoom
) -> dict[str, dict[str, ContextValue]]:
    found = {}
    for item, given in described.items():
        here = f"features[{short(item)}]"
        at_most(here, given.values, serve.max_fields, "max_fields")
        found[text("features", item, serve)] = room.take(here, values_of(here, given.values, serve))
    return found


def to_score_query(request: pb.ScoreRequest, serve: Serve) -> ScoreQuery:
    """Raises what `to_query` does."""
    check_score_counts(request, serve)
    room = ValueRoom()
    if not request.user_id:
        raise RequestError("user_id", "is empty; send any string, an unknown user is answered too")
    return ScoreQuery(
        user=request.user_id, items=texts("item_ids", request.item_ids, serve),
        context=room.take("context", values_of("context", request.context, serve)),
        features=_features(request.features, serve, room),
        recent_items=_recent(request, serve),
    )


def to_score_response(answer: ScoreAnswer, request_id: str) -> pb.ScoreResponse:
    return pb.ScoreResponse(
        request_id=request_id, bundle_version=answer.bundle_version, probabilities=answer.probabilities,
        unknown_items=answer.unknown, known_user=answer.known_user)


def to_why_not(request: pb.WhyNotRequest, serve: Serve) -> tuple[RankQuery, tuple[str, ...]]:
    """The query and the items. Raises what `to_query` does."""
    if request.request.placements:
        raise RequestError("request.placements", "cannot be explained; ask with the limit and the filters of one")
    at_most("item_ids", request.item_ids, serve.max_limit, "max_limit")
    return to_query(request.request, serve), texts("item_ids", request.item_ids, serve)


def to_why_not_response(found: Explained, request_id: str, bundle_age: float) -> pb.WhyNotResponse:
    items = [pb.ItemFate(item_id=fate.item, stage=fate.stage, cause=fate.cause, score=fate.score, needed=fate.needed,
                         measure=fate.measure, position=fate.position) for fate in found.fates]
    return pb.WhyNotResponse(request_id=request_id, bundle_version=found.answer.bundle_version, items=items,
                             answer=to_response(found.answer, request_id, bundle_age))


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
        age_seconds=stage.age,
    )
