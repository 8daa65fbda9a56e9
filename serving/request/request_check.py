"""What a request may ask for. Every refusal is a RequestError with the field, the value, the limit and the cure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sized

from contracts.config.stages import Serve
from contracts.errors import RequestError
from contracts.features.feature_spec import FeatureField, FeatureSpec
from contracts.nearest import did_you_mean
from serving.request.query import ContextValue, PageQuery, RankQuery, Scalar, ScoreQuery

MAX_RECENT = 200  # the longest sequence a field may have
MAX_VALUES = 200  # that one filter admits
INT64 = range(-(2**63), 2**63)
KEY_TYPES: dict[str, type] = {"string": str, "int64": int, "bool": bool}


def check(query: RankQuery, serve: Serve, spec: FeatureSpec, filter_fields: Collection[str]) -> None:
    """Raises RequestError on the first thing wrong."""
    if not 1 <= query.limit <= serve.max_limit:
        raise RequestError("limit", f"is {query.limit}, must lie between 1 and {serve.max_limit}")
    if query.candidates is not None and not query.candidates:
        raise RequestError("candidates", "is an empty list, from which nothing can be ranked; name at least one item, "
                                         "or leave it out to have items retrieved")
    _at_most("candidates", query.candidates, serve.max_candidates)
    _at_most("recent_items", query.recent_items, MAX_RECENT)
    _check_context(query.context, spec)
    for name, values in query.filters.items():
        if name not in filter_fields:
            near = _nearest(name, filter_fields)
            raise RequestError(f"filters[{name}]", f"is not among the filter fields of this bundle{near}")
        if not values:
            raise RequestError(f"filters[{name}]", "has no values and would keep no item; give one or leave it out")
        _at_most(f"filters[{name}]", values, MAX_VALUES)


def check_features(query: RankQuery, spec: FeatureSpec, auction: bool) -> None:
    """What the request says of candidates of its own. Raises RequestError on the first thing wrong."""
    _check_described(query.features, query.candidates or (), "candidates", spec)
    for item in query.features:
        bid = query.bids.get(item)
        if bid is None and auction and query.rerank:
            raise RequestError(f"features[{item}].bid", "is not given, and the auction needs one; give it, or set "
                                                        "skip_rerank")
        if bid is not None and not (math.isfinite(bid) and bid > 0):
            raise RequestError(f"features[{item}].bid", f"is {bid}, must be a finite number above 0")


def check_page(page: PageQuery, serve: Serve) -> None:
    """What concerns several slates at once. Raises RequestError on the first thing wrong."""
    if len(page.names) > serve.max_placements:
        raise RequestError("placements", f"has {len(page.names)} entries, at most {serve.max_placements} are allowed; "
                                         "send the others in a request of their own")
    for number, name in enumerate(page.names):
        if not name or name in page.names[:number]:
            said = f"is {name!r}, as another one's" if name else "is empty"
            raise RequestError(f"placements[{number}].name", f"{said}; give each a name of its own")
    listed = sum(len(query.candidates or ()) for query in page.queries)
    if listed > serve.max_candidates:
        raise RequestError("placements", f"have {listed} candidates together, at most {serve.max_candidates} are "
                                         "allowed; send the best of them")


def check_score(query: ScoreQuery, serve: Serve, spec: FeatureSpec) -> None:
    """Raises RequestError on the first thing wrong."""
    if not query.items:
        raise RequestError("item_ids", "is empty, so that there is nothing to score; name at least one item")
    _at_most("item_ids", query.items, serve.max_candidates)
    _at_most("recent_items", query.recent_items, MAX_RECENT)
    _check_context(query.context, spec)
    _check_described(query.features, query.items, "item_ids", spec)


def _check_described(
    described: Mapping[str, Mapping[str, ContextValue]], items: Collection[str], where_items: str, spec: FeatureSpec
) -> None:
    fields, listed = {field.name: field for field in spec.of_side("item")}, set(items)
    for item, features in described.items():
        if item not in listed:
            raise RequestError(f"features[{item}]", f"describes an item that is not among `{where_items}`; name it "
                                                    "there as well")
        for name, value in features.items():
            where = f"features[{item}][{name}]"
            if name not in fields:
                raise RequestError(where, f"is no item field of this bundle{_nearest(name, fields)}")
            _check_value(fields[name], value, where)


def _check_context(context: Mapping[str, ContextValue], spec: FeatureSpec) -> None:
    fields = {field.name: field for field in spec.of_side("context")}
    for name, value in context.items():
        where = f"context[{name}]"
        if name not in fields:
            raise RequestError(where, f"is no context field of this bundle{_nearest(name, fields)}")
        _check_value(fields[name], value, where)


def _at_most(field: str, values: Sized | None, limit: int) -> None:
    if values is not None and len(values) > limit:
        raise RequestError(field, f"has {len(values)} entries, at most {limit} are allowed; send the best of them")


def _check_value(field: FeatureField, value: ContextValue, where: str) -> None:
    if not isinstance(value, tuple):
        _check_scalar(field, value, where)
        return
    if field.kind != "multi_valued":
        raise RequestError(where, f"is a list of {len(value)} values, and the field takes one; send that")
    _at_most(where, value, MAX_RECENT)
    for place, one in enumerate(value):
        _check_scalar(field, one, f"{where}[{place}]")


def _check_scalar(field: FeatureField, value: Scalar, where: str) -> None:
    if isinstance(value, int) and value not in INT64:
        raise RequestError(where, f"is {value}, beyond the 64 bits of an integer")
    if field.dense:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise RequestError(where, f"is {value!r} of type {type(value).__name__}, a number is needed")
        if not math.isfinite(value):
            raise RequestError(where, f"is {value!r}, must be finite; leave it out when it is not known")
        return
    wanted = KEY_TYPES[field.key_type]
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise RequestError(where, f"is {value!r} of type {type(value).__name__}, {field.key_type} is needed")
    if isinstance(value, str) and "\0" in value:
        raise RequestError(where, f"is {value!r} and holds a NUL character; no stored value does, remove it")


def _nearest(word: str, known: Iterable[str]) -> str:
    known = sorted(known)
    return did_you_mean(word, known) or (f"; there are {', '.join(known)}" if known else "; it has none")
