from __future__ import annotations

import pytest

from contracts.config.stages import Serve
from contracts.errors import RequestError
from serving.proto import sluice_pb2 as pb
from serving.request.message_bounds import OutOfBounds
from serving.request.query import ContextValue
from serving.request.wire_values import ValueRoom, to_value, values_of

SERVE = Serve(max_values=2, max_text=5)


@pytest.mark.parametrize("value", ["a", 7, 0.5, True, ("a", "b"), (1, 2)])
def test_a_value_comes_back_as_it_went(value: ContextValue) -> None:
    assert values_of("context", {"name": to_value(value)}, SERVE) == {"name": value}


@pytest.mark.parametrize(("value", "message"), [
    (pb.Value(), "holds no value"), (pb.Value(list=pb.ValueList(values=[pb.Value()])), "holds no value within a list"),
    (pb.Value(list=pb.ValueList(values=[to_value(("a",))])), "holds a list within a list"),
])
def test_what_is_no_value_is_refused(value: pb.Value, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        values_of("context", {"name": value}, SERVE)


def test_values_are_counted_together_and_those_of_a_list_each() -> None:
    room = ValueRoom(5)
    assert room.take("a", {"x": 1, "y": ("b", "c")}) == {"x": 1, "y": ("b", "c")}
    room.take("b", {"x": (), "y": 1, "z": 2})
    with pytest.raises(OutOfBounds, match="more than 5, context and descriptions together") as caught:
        room.take("c", {"x": 1})
    assert caught.value.field == "c"


@pytest.mark.parametrize("value", ["longer than five", ("a", "b", "c"), ("longer than five",)])
def test_too_much_is_refused(value: ContextValue) -> None:
    with pytest.raises(OutOfBounds):
        values_of("context", {"name": to_value(value)}, SERVE)
