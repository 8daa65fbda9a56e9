"""Heads as gRPC's own servers and callers write them."""

from __future__ import annotations

import pytest

from benchmarks.wire.wire_heads import head, status, timeout


@pytest.mark.parametrize(("block", "name"), [
    (b"\x20\x88\x00\x0bgrpc-status\x018", "RESOURCE_EXHAUSTED"),
    (b"\x40\x0bgrpc-status\x0214\x00\x0cgrpc-message\x02no", "UNAVAILABLE"),
    (b"\x00\x88" + bytes.fromhex("9acac8b21234da8f") + b"\x81\x07", "OK"),
    (b"\x00\x88" + bytes.fromhex("9acac8b21234da8f") + b"\x82\x0b\x9f", "UNAUTHENTICATED"),
    (b"\x88\x0f\x10\x03abc", None),
])
def test_a_status_is_found_among_fields_plain_or_coded(block, name):
    assert status(block) == name


def test_fields_look_as_grpc_writes_them():
    assert timeout(0.025) == b"\x00\x0cgrpc-timeout\x0625000u"
    assert timeout(0.0) == b"\x00\x0cgrpc-timeout\x021u"
    assert timeout(600) == b"\x00\x0cgrpc-timeout\x04600S"
    assert b"/t.Echo/Say" in head("/t.Echo/Say", "localhost:1")
