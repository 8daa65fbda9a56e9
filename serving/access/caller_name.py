"""Whose share of a process a call takes: the token's owner's behind a gate, else that of the machine it comes from,
which behind a balancer of ours is the one that this names."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv4Address, ip_address, ip_network
from urllib.parse import unquote

import grpc

from contracts.shown import short
from serving.access.callers import UnknownCaller
from serving.access.gate import Gate
from serving.native.native_call import metadatum

IPV6_BITS = 64  # of a network, in which one machine takes whatever addresses it likes
TENANT = "sluice-tenant"  # metadata by which callers without tokens name whose share they take
FORWARDED = "x-forwarded-for"  # metadata that the balancer sets, and callers cannot
Who = Callable[[grpc.aio.ServicerContext], str]


def caller_name(gate: Gate | None, balanced: bool = False) -> Who:
    """What names the caller of a call; `balanced`: all calls come through the balancer."""
    def who(context: grpc.aio.ServicerContext) -> str:
        if gate is not None:
            try:
                return gate.caller(context.invocation_metadata() or ()).name
            except UnknownCaller:  # of a method that asks for no token
                pass
        if balanced:
            return machine(str(metadatum(context, FORWARDED) or ""))
        return machine_at(context.peer())

    return who


def named_tenant(context: grpc.aio.ServicerContext) -> str:
    """As the caller names itself in the metadata; all others are one tenant."""
    return short(str(metadatum(context, TENANT) or ""))


@lru_cache(4096)
def machine_at(peer: str) -> str:
    """Of a connection, as gRPC names it."""
    return machine(unquote(peer).partition(":")[2].rpartition(":")[0].strip("[]"))


@lru_cache(4096)
def machine(host: str) -> str:
    """An IPv4 address as it is, of an IPv6 one the network; what is none is one machine, as on a socket of files."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return ""
    if isinstance(address, IPv4Address):
        return str(address)
    return str(address.ipv4_mapped or ip_network((address, IPV6_BITS), strict=False))
