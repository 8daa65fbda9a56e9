"""Between the wire (serving/proto/sluice.proto) and the funnel's own words (serving/request/query.py)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

from contracts.config.stages import Serve
from contracts.errors import RequestError
from contracts.features.event_features import NOTHING_TOLD, ToldEvents
from contracts.shown import short
from serving.proto import sluice_pb2 as pb
from serving.request.message_bounds import (
    BY_COLUMN,
    at_most,
    check_rank_counts,
    check_score_counts,
    said,
    text,
    texts,
)
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

Said = Mapping[str, Any]  # what a message sets, by name
Fields = dict[str, Any]  # of a message within another: one that is made apart would be copied into it
NOTHING: Mapping[str, Any] = {}
LATEST = 253_402_300_800.0  # seconds from 1970 to the end of 9999
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
    given, room = said(request), room or ValueRoom()
    check_rank_counts(given, serve)
    features = given.get("features", NOTHING)
    return RankQuery(
        user=_user(given),
        limit=given.get("limit", serve.default_limit),
        context=room.take("context", values_of("context", given.get("context", NOTHING), serve)),
        candidates=_candidates(given, serve),
        filters=_filters("filters", given.get("filters", NOTHING), serve),
        excluded=_filters("excluded", given.get("excluded", NOTHING), serve),
        ranges=_ranges("ranges", given.get("ranges", NOTHING), serve),
        recent_items=_recent(given, serve),
        told=_told(given, serve),
        rerank=not given.get("skip_rerank", False),
        explain=given.get("reasons", False),
        partial_ok=given.get("partial_ok", True),
        features=_features(features, serve, room),
        bids={item: one.bid for item, one in features.items() if one.HasField("bid")},
    )


def _user(given: Said) -> str:
    user: str = given.get("user_id", "")
    if not user:
        raise RequestError("user_id", "is empty; send any string, an unknown user is answered too")
    return user


def to_page_query(request: pb.RankRequest, serve: Serve) -> PageQuery:
    """A query per placement. Raises what `to_query` does, and RequestError for what placements say themselves."""
    room, given = ValueRoom(), said(request)
    whole = to_query(request, serve, room)
    for field in ("limit", "candidates", "candidate_list", *BY_COLUMN):
        if field in given:
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
        whole, placement=placement.name, candidates=listed,
        limit=placement.limit if placement.HasField("limit") else serve.default_limit,
        filters=_filters(f"{where}.filters", placement.filters, serve),
        excluded=_filters(f"{where}.excluded", placement.excluded, serve),
        ranges=_ranges(f"{where}.ranges", placement.ranges, serve),
        context={**whole.context, **room.take(f"{where}.context", context)},
        features={item: whole.features[item] for item in listed or () if item in whole.features})


def _candidates(given: Said, serve: Serve) -> tuple[str, ...] | None:
    """None asks for retrieval; an empty list does not."""
    if "candidate_list" in given:
        return texts("candidate_list", given["candidate_list"].item_ids, serve)
    return texts("candidates", given["candidates"], serve) if "candidates" in given else None


def _recent(given: Said, serve: Serve) -> tuple[str, ...] | None:
    return texts("recent_items", given["recent_items"].item_ids, serve) if "recent_items" in given else None


def _told(given: Said, serve: Serve) -> ToldEvents:
    """Of the recent items. Raises RequestError where there are others than one for each item."""
    if "recent_events" not in given:
        return NOTHING_TOLD
    told, columns = given["recent_events"], {}
    count = len(given["recent_items"].item_ids) if "recent_items" in given else 0
    _one_each("recent_events.times", len(told.times), count)
    at_most("recent_events.columns", told.columns, serve.max_fields, "max_fields")
    for name, values in told.columns.items():
        here = f"recent_events.columns[{short(name)}]"
        _one_each(here, len(values.values), count)
        columns[text("recent_events.columns", name, serve)] = [one or None for one in texts(here, values.values, serve)]
    return ToldEvents([_micros(seconds) for seconds in told.times], columns)


def _one_each(where: str, found: int, items: int) -> None:
    if found not in (0, items):
        raise RequestError(where, f"has {found} values for {items} recent_items; send one for each, in their order, or "
                                  "none")


def _micros(seconds: float) -> int:
    """0 for what is no moment between 1970 and 9999."""
    return round(seconds * 1_000_000) if 0 < seconds < LATEST else 0


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
    given, room = said(request), ValueRoom()
    check_score_counts(given, serve)
    return ScoreQuery(
        user=_user(given), items=texts("item_ids", given.get("item_ids", ()), serve),
        context=room.take("context", values_of("context", given.get("context", NOTHING), serve)),
        features=_features(given.get("features", NOTHING), serve, room), recent_items=_recent(given, serve),
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
    response = pb.RankResponse(
        request_id=request_id,
        bundle_version=answer.bundle_version,
        stages=[_stage(stage) for stage in answer.stages],
        unknown_candidates=answer.unknown_candidates,
        known_user=answer.known_user,
        bundle_age_seconds=bundle_age,
        degraded=answer.degraded,
    )
    _add_items(response.items, answer.items)
    return response


def _page_response(page: PageAnswer, request_id: str, bundle_age: float) -> pb.RankResponse:
    first = page.slates[0]
    response = pb.RankResponse(
        request_id=request_id, bundle_version=first.bundle_version, known_user=first.known_user,
        bundle_age_seconds=bundle_age, degraded=any(slate.degraded for slate in page.slates))
    for name, slate in zip(page.names, page.slates, strict=True):
        placed = response.placements.add(
            name=name, stages=[_stage(stage) for stage in slate.stages], unknown_candidates=slate.unknown_candidates,
            degraded=slate.degraded)
        _add_items(placed.items, slate.items)
    return response


def _add_items(into: RepeatedCompositeFieldContainer[pb.RankedItem], items: Sequence[RankedItem]) -> None:
    for item in items:
        made = into.add()
        made.item_id, made.probability, made.score, made.channel = item.item, item.probability, item.score, item.channel
        if item.sold is not None:
            made.price = item.sold.price
        for reason in item.reasons:
            made.reasons.add(field=reason.field, logit_change=reason.logit_change)
        scores = made.stage_scores
        for stage, score in item.stage_scores.items():
            scores[stage] = score


def _stage(stage: StageReport) -> Fields:
    """Of a pb.StageReport."""
    return {
        "name": stage.name,
        "candidates_in": stage.candidates_in,
        "candidates_out": stage.candidates_out,
        "microseconds": stage.microseconds,
        "status": STATUS[stage.status],
        "cause": stage.cause,
        "fallback": FALLBACK[stage.fallback],
        "age_seconds": stage.age,
    }
