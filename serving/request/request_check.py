"""What a request may ask for; how much of it says serving/request/message_bounds.py.

Every refusal is a RequestError with the field, the value, the limit and the cure.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping

from contracts.config.section import Side
from contracts.config.stages import Serve
from contracts.errors import RequestError
from contracts.features.feature_spec import FeatureField, FeatureSpec
from contracts.nearest import did_you_mean
from contracts.shown import short, shown
from serving.request.query import ContextValue, PageQuery, RankQuery, Scalar, ScoreQuery

NAMED = 20  # names that a refusal lists
MOST_BID = 1e9  # of a click, in whatever currency; beyond float32 two such bids would make an infinite price
INT64 = range(-(2**63), 2**63)
KEY_TYPES: dict[str, type] = {"string": str, "int64": int, "bool": bool}


def check(
    query: RankQuery, serve: Serve, spec: FeatureSpec, filter_fields: Collection[str], numbers: Collection[str] = (),
    event_columns: Collection[str] = (),
) -> None:
    """Raises RequestError on the first thing wrong."""
    if not 1 <= query.limit <= serve.max_limit:
        raise RequestError("limit", f"is {query.limit}, must lie between 1 and {serve.max_limit} (serve.max_limit)")
    if query.candidates is not None and not query.candidates:
        raise RequestError("candidates", "is an empty list, from which nothing can be ranked; name at least one item, "
                                         "or leave it out to have items retrieved")
    _check_context(query.context, spec)
    for where, given in (("filters", query.filters), ("excluded", query.excluded)):
        for name, values in given.items():
            if name not in filter_fields:
                near = _nearest(name, filter_fields)
                raise RequestError(f"{where}[{short(name)}]", f"is not among the filter fields of this bundle{near}")
            if not values:
                what = "would keep no item" if where == "filters" else "excludes none"
                raise RequestError(f"{where}[{name}]", f"has no values and {what}; give one or leave it out")
    for name, bounds in query.ranges.items():
        _check_range(name, bounds, numbers)
    for name in query.told.columns:
        if name not in event_columns:
            near = _nearest(name, event_columns)
            raise RequestError(f"recent_events.columns[{short(name)}]",
                               f"is not in retrieve.events of this bundle{near}")


def _check_range(name: str, bounds: tuple[float, float], numbers: Collection[str]) -> None:
    where, (least, most) = f"ranges[{short(name)}]", bounds
    if name not in numbers:
        raise RequestError(where, f"is not among the columns of numbers of this server{_nearest(name, numbers)}")
    if math.isinf(least) and math.isinf(most):
        raise RequestError(where, "has no bound and would keep every item; give at_least, at_most or both")
    if not least <= most:
        raise RequestError(where, f"goes from {least} to {most}, which no number does; give the smaller one first")


def check_features(query: RankQuery, spec: FeatureSpec, auction: bool) -> None:
    """What the request says of candidates of its own. Raises RequestError on the first thing wrong."""
    _check_described(query.features, query.candidates or (), "candidates", spec)
    for item in query.features:
        bid = query.bids.get(item)
        if bid is None and auction and query.rerank:
            raise RequestError(f"features[{short(item)}].bid", "is not given, and the auction needs one; give it, or "
                                                               "set skip_rerank")
        if bid is not None and not 0 < bid <= MOST_BID:
            raise RequestError(f"features[{short(item)}].bid", f"is {bid}, must be above 0 and at most {MOST_BID:g}")


def check_page(page: PageQuery) -> None:
    """What concerns several slates at once. Raises RequestError on the first thing wrong."""
    for number, name in enumerate(page.names):
        if not name or name in page.names[:number]:
            said = f"is {shown(name)}, as another one's" if name else "is empty"
            raise RequestError(f"placements[{number}].name", f"{said}; give each a name of its own")


def check_score(query: ScoreQuery, spec: FeatureSpec) -> None:
    """Raises RequestError on the first thing wrong."""
    if not query.items:
        raise RequestError("item_ids", "is empty, so that there is nothing to score; name at least one item")
    _check_context(query.context, spec)
    _check_described(query.features, query.items, "item_ids", spec)


def _check_described(
    described: Mapping[str, Mapping[str, ContextValue]], items: Collection[str], where_items: str, spec: FeatureSpec
) -> None:
    listed = set(items) if described else set()
    for item, features in described.items():
        if item not in listed:
            raise RequestError(f"features[{short(item)}]", f"describes an item that is not among `{where_items}`; name "
                                                           "it there as well")
        try:
            for name, value in features.items():
                where = f"[{name}]" if name in spec.by_name else f"[{short(name)}]"
                check_value(_field(name, "item", spec, where), value, where)
        except RequestError as error:
            raise RequestError(f"features[{short(item)}]{error.field}", error.problem) from None


def _check_context(context: Mapping[str, ContextValue], spec: FeatureSpec) -> None:
    for name, value in context.items():
        where = f"context[{short(name)}]"
        check_value(_field(name, "context", spec, where), value, where)


def _field(name: str, side: Side, spec: FeatureSpec, where: str) -> FeatureField:
    """Raises RequestError where that side has none of this name."""
    found = spec.by_name.get(name)
    if found is None or found.side != side:
        near = _nearest(name, [field.name for field in spec.of_side(side)])
        raise RequestError(where, f"is no {side} field of this bundle{near}")
    return found


def check_value(field: FeatureField, value: ContextValue, where: str) -> None:
    """Raises RequestError where the field cannot take it."""
    if not isinstance(value, tuple):
        _check_scalar(field, value, where)
        return
    if field.kind != "multi_valued":
        raise RequestError(where, f"is a list of {len(value)} values, and the field takes one; send that")
    for place, one in enumerate(value):
        _check_scalar(field, one, f"{where}[{place}]")


def _check_scalar(field: FeatureField, value: Scalar, where: str) -> None:
    if isinstance(value, int) and value not in INT64:
        raise RequestError(where, f"is {shown(value)}, beyond the 64 bits of an integer")
    if field.dense:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise RequestError(where, f"is {shown(value)} of type {type(value).__name__}, a number is needed")
        if not math.isfinite(value):
            raise RequestError(where, f"is {shown(value)}, must be finite; leave it out when it is not known")
        if field.kind == "counter" and value < 0:
            raise RequestError(where, f"is {shown(value)}, and no count and no rate is below 0; leave it out when it "
                                      "is not known")
        return
    wanted = KEY_TYPES[field.key_type]
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise RequestError(where, f"is {shown(value)} of type {type(value).__name__}, {field.key_type} is needed")
    if isinstance(value, str) and "\0" in value:
        raise RequestError(where, f"is {shown(value)} and holds a NUL character; no stored value does, remove it")


def _nearest(word: str, known: Iterable[str]) -> str:
    known = sorted(known)
    more = ", ..." if len(known) > NAMED else ""
    listed = f"; there are {', '.join(known[:NAMED])}{more}" if known else "; it has none"
    return did_you_mean(word, known) or listed
