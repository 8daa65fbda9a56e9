"""What is drawn reaches every field and every kind, and is no larger than it says."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
from google.protobuf.message import DecodeError
from hypothesis import HealthCheck, Phase, given, seed, settings

from benchmarks.hostile.messages import KINDS, LARGEST, METHODS, Sent, calls
from serving.batches.wire_parts import fields_of, parts_of
from serving.proto import sluice_pb2 as pb


@cache
def drawn(count: int, kinds: tuple[str, ...] = KINDS) -> list[Sent]:
    found: list[Sent] = []

    @seed(1)
    @settings(max_examples=count, database=None, deadline=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))
    @given(calls(kinds))
    def draw(sent: Sent) -> None:
        found.append(sent)

    draw()
    return found


def unpacked(sent: Sent) -> int:
    """Elements of the largest list; 0 where it is no request."""
    try:
        message = METHODS[sent.method].FromString(sent.content)
    except DecodeError:
        return 0
    return max((len(value) for field, value in message.ListFields() if field.is_repeated), default=0)


def parts(sent: Sent) -> int:
    """As the server counts them; 0 where it is no request."""
    try:
        return parts_of(sent.content, METHODS[sent.method].DESCRIPTOR, LARGEST)
    except DecodeError:
        return 0


def test_every_method_is_drawn_and_every_batch_flooded() -> None:
    services = pb.DESCRIPTOR.services_by_name.items()
    assert {f"{name}/{method.name}" for name, service in services for method in service.methods} == METHODS.keys()
    flooded = {sent.method for sent in drawn(1600, ("flooded",)) if unpacked(sent) > LARGEST // 10}
    assert flooded >= METHODS.keys() - {"Ranking/Rank", "Ranking/Score", "Ranking/WhyNot", "Catalog/Status"}


def test_floods_lie_within_a_message_too() -> None:
    """Counted in the bytes as the server counts them: of few entries at the top, and of many parts."""
    found = [sent for sent in drawn(400, ("nested",)) if sent.method == "Catalog/Upsert"]
    assert all(fields_of(sent.content, 10) == 1 for sent in found)
    assert max(map(parts, found)) > LARGEST // 10


@pytest.mark.slow
def test_every_kind_and_every_field_is_drawn() -> None:
    found = drawn(1600)
    kinds = {"drawn", "spoilt", "random", "flooded", "nested", "too large"}
    assert Counter(sent.kind for sent in found).keys() == kinds
    fields = set()
    for sent in found:
        assert len(sent.content) <= LARGEST + 2_000 or sent.kind in ("too large", "spoilt")
        if sent.kind == "drawn" and len(sent.content) < LARGEST:
            message = METHODS[sent.method].FromString(sent.content)
            fields |= {(sent.method, field.name) for field, _ in message.ListFields()}
    wanted = {(method, field.name) for method, made in METHODS.items() for field in made.DESCRIPTOR.fields}
    assert len(wanted - fields) <= 2
