"""Values of requests by name: from the wire, and to it."""

from __future__ import annotations

from collections.abc import Mapping

from contracts.config.stages import Serve
from contracts.errors import RequestError
from contracts.shown import short
from serving.proto import sluice_pb2 as pb
from serving.request.message_bounds import OutOfBounds, at_most, text
from serving.request.query import ContextValue, Scalar

MOST_VALUES = 50_000  # of the context and of all described items of one request: some fifty milliseconds


class ValueRoom:
    """How many more values a request may hold, of those that are read one by one."""

    def __init__(self, most: int = MOST_VALUES) -> None:
        self._most = self._left = most

    def take(self, where: str, values: dict[str, ContextValue]) -> dict[str, ContextValue]:
        """The values themselves. Raises OutOfBounds where there is no room for them; those of a list count each."""
        self._left -= sum(len(value) if isinstance(value, tuple) else 1 for value in values.values())
        if self._left < 0:
            raise OutOfBounds(where, f"brings the request's values to more than {self._most}, context and descriptions "
                                     "together; send fewer at once")
        return values


def values_of(where: str, given: Mapping[str, pb.Value], serve: Serve) -> dict[str, ContextValue]:
    """By name. Raises RequestError for an empty one, OutOfBounds for too much of anything."""
    return {text(where, name, serve): _value(where, name, value, serve) for name, value in given.items()}


def _value(where: str, name: str, value: pb.Value, serve: Serve) -> ContextValue:
    kind = value.WhichOneof("kind")
    if kind in ("integer", "number", "flag"):
        plain: Scalar = getattr(value, kind)
        return plain
    if kind == "text" and len(value.text) <= serve.max_text:
        return value.text
    where = f"{where}[{short(name)}]"
    if kind is None:
        raise RequestError(
            where, "holds no value; set text, integer, number or flag, or leave the field out"
        )
    if kind == "list":
        at_most(where, value.list.values, serve.max_values, "max_values")
        return tuple(_scalar(f"{where}[{place}]", one, serve) for place, one in enumerate(value.list.values))
    return text(where, value.text, serve)


def _scalar(where: str, value: pb.Value, serve: Serve) -> Scalar:
    kind = value.WhichOneof("kind")
    if kind is None or kind == "list":
        raise RequestError(where, f"holds {'a list' if kind else 'no value'} within a list; give one value each")
    result: Scalar = getattr(value, kind)
    return text(where, result, serve) if isinstance(result, str) else result


def to_value(value: ContextValue) -> pb.Value:
    if isinstance(value, tuple | list):
        return pb.Value(list=pb.ValueList(values=[to_value(one) for one in value]))
    if isinstance(value, bool):
        return pb.Value(flag=value)
    if isinstance(value, int):
        return pb.Value(integer=value)
    return pb.Value(number=value) if isinstance(value, float) else pb.Value(text=value)
