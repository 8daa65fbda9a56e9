"""Refused before the request is read, whatever the method's shape, and let through otherwise."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest

from serving.access.gate import Gate
from serving.access.interceptor import AccessInterceptor
from serving.access.new_token import entry

RANK, OTHER = "/sluice.v1.Ranking/Rank", "/some.Service/Method"


async def outcome(gate: Gate, method: str, token: str) -> Any:
    async def answer(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        return b"answered"

    handlers = [grpc.method_handlers_generic_handler(*path.strip("/").split("/")[:1], {  # type: ignore[arg-type]
        path.rpartition("/")[2]: grpc.unary_unary_rpc_method_handler(answer)}) for path in (RANK, OTHER)]
    server = grpc.aio.server(interceptors=[AccessInterceptor(gate)])
    server.add_generic_rpc_handlers(handlers)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            found = await channel.unary_unary(method)(
                b"", timeout=20, metadata=(("authorization", f"Bearer {token}"),) if token else ())
        except grpc.aio.AioRpcError as error:
            found = error.code().name
    await server.stop(0)
    return found


@pytest.mark.parametrize(("method", "token", "found"), [
    (RANK, "shop", b"answered"), (RANK, "", "UNAUTHENTICATED"), (RANK, "wrong", "UNAUTHENTICATED"),
    (OTHER, "shop", "PERMISSION_DENIED"), (OTHER, "", "UNAUTHENTICATED"), ("/no.Such/Method", "", "UNAUTHENTICATED"),
    ("/no.Such/Method", "shop", "PERMISSION_DENIED"), ("/sluice.v1.Ranking/Unknown", "shop", "UNIMPLEMENTED"),
])
def test_the_gate_stands_before_every_method(tmp_path: Path, method: str, token: str, found: Any) -> None:
    (tmp_path / "access.toml").write_text(entry("shop", "shop", ["ranking"], None))
    assert asyncio.run(outcome(Gate(tmp_path / "access.toml"), method, token)) == found
