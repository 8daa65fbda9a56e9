from __future__ import annotations

import asyncio

import grpc
import pytest

from serving.native import grpc_server
from serving.native.native_library import library
from serving.native.native_server import NativeServer


def made(newer: bool = False) -> type:
    async def kind() -> type:
        return type(grpc_server.grpc_server(newer=newer))

    return asyncio.run(kind())


def test_it_is_the_native_one_where_there_is_one() -> None:
    if library() is None:
        pytest.skip("gRPC's C++ library is not on this machine")
    assert made() is NativeServer


def test_it_is_the_other_one_where_it_has_to_be_or_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert issubclass(made(newer=True), grpc.aio.Server)
    monkeypatch.setattr(grpc_server, "library", lambda: None)
    assert issubclass(made(), grpc.aio.Server)
