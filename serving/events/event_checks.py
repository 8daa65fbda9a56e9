"""What a caller says of events -> events, or why one is none: by the rules by which the pipelines set rows aside.

An event that passed here is never quarantined later: what the server counts, tomorrow's features count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from contracts.config.stages import Serve
from contracts.errors import RequestError
from contracts.features.event_features import ColumnType, EventFeatures
from contracts.nearest import Hints
from contracts.shown import short, shown
from serving.events.event import Event, Kind
from serving.proto import sluice_pb2 as pb
from serving.request.message_bounds import at_most, micros, text
from serving.request.query import ContextValue
from serving.request.request_check import MOST_BID
from serving.request.wire_values import values_of

MOST_POSITION = 2**31 - 1
AHEAD = 1_000_000  # microseconds that a caller's clock may be ahead
TYPES: dict[ColumnType, tuple[type, ...]] = {
    "text": (str,), "integer": (int,), "number": (int, float), "flag": (bool,), "list": (tuple,)}
KINDS = {pb.Event.IMPRESSION: Kind.IMPRESSION, pb.Event.CLICK: Kind.CLICK, pb.Event.CONVERSION: Kind.CONVERSION}


class Checked(NamedTuple):
    """Both in the order of the request, which had so many bytes."""

    events: list[Event]
    errors: list[pb.EventError]
    size: int = 0


def check_events(request: pb.RecordEventsRequest, features: EventFeatures, serve: Serve, now: int) -> Checked:
    """`now` in microseconds since 1970. Raises OutOfBounds where there are too many."""
    at_most("events", request.events, serve.max_events, "max_events")
    events, errors = list[Event](), list[pb.EventError]()
    hints = Hints()
    for index, told in enumerate(request.events):
        try:
            events.append(check_event(told, features, serve, now, hints))
        except RequestError as error:
            errors.append(pb.EventError(index=index, event_id=short(told.event_id), field=error.field,
                                        problem=error.problem))
    return Checked(events, errors, request.ByteSize())


def check_event(
    told: pb.Event, features: EventFeatures, serve: Serve, now: int, hints: Hints, otherwise: int | None = None
) -> Event:
    """`otherwise`: when it was, where it does not tell. Raises RequestError where it is none."""
    kind = KINDS.get(told.kind)
    if kind is None:
        raise RequestError("kind", "is none of IMPRESSION, CLICK and CONVERSION; set one")
    event_id = _key("event_id", told.event_id, serve)
    at = micros(told.event_time, "event_time") if told.HasField("event_time") else otherwise
    if at is not None and not 0 <= at <= now + AHEAD:
        raise RequestError("event_time", f"is {(at - now) / 1e6:+.3f} s from the server's clock; between 1970 and a "
                                         "second ahead is taken")
    columns = _columns(told, kind, features, serve, hints)
    return Event(id=event_id, kind=kind, at=at, user=told.user_id, item=told.item_id, columns=columns)


def _columns(
    told: pb.Event, kind: Kind, features: EventFeatures, serve: Serve, hints: Hints
) -> dict[str, ContextValue]:
    """By their names in the log: the roles' first."""
    log = features.log
    found: dict[str, ContextValue] = {}
    for role, name in (("user_id", log.user_id), ("item_id", log.item_id), ("request_id", log.request_id)):
        if name and (kind is Kind.IMPRESSION or getattr(told, role)):
            found[name] = _key(role, getattr(told, role), serve)
    if kind is Kind.IMPRESSION:
        found |= _numbers(told, features)
    if told.columns:
        found |= _of_the_log(told.columns, found, features, serve, hints)
    _check_keys(found, kind, features)
    return found


def _of_the_log(
    told: Mapping[str, pb.Value], roles: Mapping[str, ContextValue], features: EventFeatures, serve: Serve, hints: Hints
) -> dict[str, ContextValue]:
    """Columns beside the `roles`."""
    at_most("columns", told, serve.max_fields, "max_fields")
    more, log = values_of("columns", told, serve), features.log
    times = {log.event_time, log.known_time, features.clicks.event_time, features.clicks.known_time}
    taken = next((name for name in more if name in roles or name in times), None)
    if taken is not None:
        raise RequestError(f"columns[{short(taken)}]", "is told by a field of the event itself; leave it out here")
    return {name: _typed(name, value, features, hints) for name, value in more.items()}


def _typed(name: str, value: ContextValue, features: EventFeatures, hints: Hints) -> ContextValue:
    kind = features.column_type(name)
    where = f"columns[{short(name)}]"
    if kind is None:
        raise RequestError(where, "is no column of the log that a field or a key reads; leave it out"
                                  + hints(name, features.readable))
    if not _is_of(kind, value):
        raise RequestError(where, f"is {shown(str(value))}, but the log's column is of the type {kind}; send such a "
                                  "value")
    if isinstance(value, float) and not math.isfinite(value):
        raise RequestError(where, f"is {value}, which is no number to count with; leave the column out")
    return float(value) if kind == "number" and isinstance(value, int) else value


def _is_of(kind: ColumnType, value: ContextValue) -> bool:
    if isinstance(value, tuple):
        return kind == "list" and all(isinstance(one, str) for one in value)
    return isinstance(value, TYPES[kind]) and (kind == "flag" or not isinstance(value, bool))


def _numbers(told: pb.Event, features: EventFeatures) -> dict[str, ContextValue]:
    found: dict[str, ContextValue] = {}
    if features.log.position:
        if not 1 <= told.position <= MOST_POSITION:
            raise RequestError("position", f"is missing or 0, or above {MOST_POSITION}, but the log has one; send 1 "
                                           "for the first place")
        found[features.log.position] = told.position
    if features.log.bid:
        if not told.HasField("bid") or not 0 <= told.bid <= MOST_BID:
            raise RequestError("bid", f"is missing, negative, above {MOST_BID:g} or no number, but the log has one; "
                                      "send what a click pays")
        found[features.log.bid] = told.bid
    return found


def _check_keys(columns: dict[str, ContextValue], kind: Kind, features: EventFeatures) -> None:
    """The columns that say which impression it is."""
    needed: Sequence[str] = () if kind is Kind.CONVERSION else features.clicks.on
    for name in needed:
        value = columns.get(name)
        if value is None:
            raise RequestError(_told_as(name, features),
                               "is missing: it says which impression this is (label.clicks.on)")
        if isinstance(value, float | tuple) or (isinstance(value, str) and "\0" in value):
            raise RequestError(_told_as(name, features),
                               f"is {shown(str(value))}: a key is text without NUL, a whole number or a flag")


def _told_as(name: str, features: EventFeatures) -> str:
    log = features.log
    roles = {log.user_id: "user_id", log.item_id: "item_id", log.request_id: "request_id"}
    return roles.get(name, f"columns[{name}]")


def _key(where: str, value: str, serve: Serve) -> str:
    if not value:
        raise RequestError(where, "is empty; send any text")
    if "\0" in value:
        raise RequestError(where, "holds a NUL character; leave it out")
    return text(where, value, serve)
