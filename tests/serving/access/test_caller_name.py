"""Callers of a real channel by the name of their token, and by their machine where they have none."""

from __future__ import annotations

import asyncio
from pathlib import Path

import grpc
import pytest

from serving.access.caller_name import caller_name, machine
from serving.access.gate import Gate
from serving.access.new_token import entry


@pytest.mark.parametrize(("host", "name"), [
    ("10.0.0.5", "10.0.0.5"), ("::ffff:10.0.0.5", "10.0.0.5"), ("2001:db8::1", "2001:db8::/64"),
    ("2001:db8:0:0:ffff::9", "2001:db8::/64"), ("2001:db8:0:1::1", "2001:db8:0:1::/64"), ("fe80::1%eth0", "fe80::/64"),
    ("::1", "::/64"), ("", ""), ("/run/socket", "")])
def test_a_machine_has_one_name_whatever_addresses_it_takes(host: str, name: str) -> None:
    assert machine(host) == name


@pytest.mark.parametrize(("gated", "balanced", "token", "name"), [
    (True, False, "shop-token", "shop"), (True, False, "other", "127.0.0.1"), (True, False, "", "127.0.0.1"),
    (False, False, "", "127.0.0.1"), (True, True, "shop-token", "shop"), (True, True, "other", "10.0.0.9"),
    (False, True, "", "10.0.0.9")])
def test_a_caller_is_who_owns_the_token_else_where_the_call_is_from(
    tmp_path: Path, gated: bool, balanced: bool, token: str, name: str
) -> None:
    """Behind a balancer where this says; else whoever says so is not believed."""
    (tmp_path / "access.toml").write_text(entry("shop-token", "shop", ["ranking"], None))
    who = caller_name(Gate(tmp_path / "access.toml") if gated else None, balanced)

    async def answer(request: bytes, context: grpc.aio.ServicerContext) -> bytes:
        return who(context).encode()

    async def drive() -> bytes:
        server = grpc.aio.server()
        handlers = {"Ask": grpc.unary_unary_rpc_method_handler(answer)}
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("some.Service", handlers),))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            metadata = (("x-forwarded-for", "10.0.0.9"), *((("authorization", f"Bearer {token}"),) if token else ()))
            found: bytes = await channel.unary_unary("/some.Service/Ask")(b"", timeout=20, metadata=metadata)
        await server.stop(None)
        return found

    assert asyncio.run(drive()).decode() == name
