"""The messages of sluice.v1.Catalog as changes: each item is checked for itself, so that one that is wrong stops no
other."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from contracts.config.stages import Serve
from contracts.errors import RequestError
from contracts.features.feature_spec import FeatureField
from contracts.nearest import Hints
from contracts.shown import short, shown
from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue.change import WITHDRAWN, Change, Kind, encoded
from serving.proto import sluice_pb2 as pb
from serving.request.message_bounds import at_most, micros, text
from serving.request.query import ContextValue
from serving.request.request_check import MOST_BID, check_value

Message = pb.UpsertRequest | pb.WithdrawRequest | pb.SetBidsRequest | pb.SetStockRequest


class Problem(NamedTuple):
    """What a RequestError says, without the frames that an error keeps alive until the next full collection."""

    field: str
    text: str


@dataclass
class Asked:
    """One item of a batch: its changes, all or none of them, or why there are none."""

    item: str
    changes: list[Change] = field(default_factory=list)
    problem: Problem | None = None


class ChangeReader:
    """Reads batches for a bundle with these item fields, filter fields, and an auction or none."""

    def __init__(self, bundle: LoadedBundle) -> None:
        self._serve: Serve = bundle.settings.serve
        self._fields: dict[str, FeatureField] = {one.name: one for one in bundle.spec.of_side("item")}
        self._filters = frozenset(bundle.settings.retrieve.filter_fields)
        self._numbers = frozenset(bundle.settings.retrieve.numbers)
        self._has_bids = bundle.bids is not None
        self._names = sorted({*self._fields, *self._filters, *self._numbers})
        self._listed = ", ".join(self._names[:20])

    def read(self, request: Message) -> list[Asked]:
        """Raises OutOfBounds for more items than a request may hold."""
        at_most("items", request.items, self._serve.max_candidates, "max_candidates")
        arrived = time.time_ns() // 1000
        hints = Hints()
        return [self._asked(one, arrived, hints) for one in request.items]

    def _asked(self, one: pb.ItemUpsert | pb.Change | pb.ItemBid | pb.ItemStock, arrived: int, hints: Hints) -> Asked:
        change = one if isinstance(one, pb.Change) else one.change
        try:
            made = [_made(change, kind, value, arrived, self._serve) for kind, value in self._said(one, hints)]
        except RequestError as error:
            return Asked(short(change.item_id), problem=Problem(error.field, error.problem))
        return Asked(change.item_id, made)

    def _said(
        self, one: pb.ItemUpsert | pb.Change | pb.ItemBid | pb.ItemStock, hints: Hints
    ) -> Iterable[tuple[Kind, object]]:
        if isinstance(one, pb.Change):
            yield "item", WITHDRAWN
        if isinstance(one, pb.ItemUpsert):
            at_most("values", one.values, self._serve.max_fields, "max_fields")
            yield "item", {name: self._value(name, value, hints) for name, value in one.values.items()}
        if isinstance(one, pb.ItemBid) or (isinstance(one, pb.ItemUpsert) and one.HasField("bid")):
            yield "bid", self._bid(one.bid)
        if isinstance(one, pb.ItemStock) or (isinstance(one, pb.ItemUpsert) and one.HasField("stock")):
            yield "stock", _amount("stock", one.stock)

    def _bid(self, bid: float) -> float:
        if not self._has_bids:
            raise RequestError("bid", "is given, and this bundle has no auction; leave it out")
        if bid > MOST_BID:
            raise RequestError("bid", f"is {bid}, at most {MOST_BID:g} is taken")
        return _amount("bid", bid)

    def _value(self, name: str, value: pb.Value, hints: Hints) -> ContextValue:
        where, known = f"values[{name}]", self._fields.get(name)
        if known is None and name not in self._filters and name not in self._numbers:
            why = (f"is no item field and no column of filters or ranges of this bundle{hints(name, self._names)}; "
                   f"there are {self._listed}")
            raise RequestError(f"values[{short(name)}]", why)
        found = _plain(value, where, self._serve)
        if known is not None:
            check_value(known, found, where)
        if name in self._filters and not isinstance(found, str | int):
            what = "a list" if isinstance(found, tuple) else f"{found!r} of type float"
            raise RequestError(where, f"is {what}, and requests filter by it; send text, a whole number (`integer`) or "
                                      "a flag")
        if name in self._numbers and (isinstance(found, bool) or not isinstance(found, int | float)):
            raise RequestError(where, f"is {shown(str(found))}, and requests ask ranges of it; send a number, of a "
                                      "time the seconds since 1970")
        return found


def _made(change: pb.Change, kind: Kind, value: object, arrived: int, serve: Serve) -> Change:
    if not change.item_id:
        raise RequestError("change.item_id", "is empty; name the item")
    if "\0" in text("change.item_id", change.item_id, serve):
        raise RequestError("change.item_id", "holds a NUL character; remove it")
    if change.version < 1:
        raise RequestError("change.version", f"is {change.version}, must be 1 or more and rise with every change of "
                                             "the item, as milliseconds since 1970 do")
    told = micros(change.event_time, "change.event_time") if change.HasField("event_time") else arrived
    when = min(told, arrived)  # or no bundle would ever know better, and the item be of a negative age
    return Change(item=change.item_id, kind=kind, version=change.version, event_time=when, arrived=arrived,
                  value=encoded(value))


def _amount(name: str, value: float) -> float:
    if not (math.isfinite(value) and value >= 0):
        raise RequestError(name, f"is {value}, must be a finite number of 0 or more")
    return value


def _plain(value: pb.Value, where: str, serve: Serve) -> ContextValue:
    kind = value.WhichOneof("kind")
    if kind is None:
        raise RequestError(where, "holds no value; set text, integer, number or flag, or leave the field out")
    if kind == "list":
        at_most(where, value.list.values, serve.max_values, "max_values")
        return tuple(_single(one, f"{where}[{place}]", serve) for place, one in enumerate(value.list.values))
    return _single(value, where, serve)


def _single(value: pb.Value, where: str, serve: Serve) -> str | int | float | bool:
    kind = value.WhichOneof("kind")
    if kind is None or kind == "list":
        raise RequestError(where, f"holds {'a list' if kind else 'no value'} within a list; give one value each")
    found: str | int | float | bool = getattr(value, kind)
    if isinstance(found, float) and not math.isfinite(found):
        raise RequestError(where, f"is {found}, must be finite; leave it out when it is not known")
    return text(where, found, serve) if isinstance(found, str) else found
