"""How a client's calls reach a server: which of several, again after a failure, and twice where the first is slow. One
that was away is asked within a second or two of its return (RECONNECT), by the gateway and the console as well.

Addresses take turns, and calls are sent again, by gRPC's own means (round_robin, retryPolicy of its service
configuration): after a status of `again`, at most `attempts` times in all, within the call's deadline. A call that is
hedged is sent once more, to the next address, when no answer has come for `hedge_seconds`; the first answer counts and
the other call is cancelled. Every call may be sent twice: a ranking changes nothing (but with a response log, what is
asked twice is logged twice), events and changes of items are known again by their ids and versions.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.message import Message

from contracts.errors import ConfigError
from serving.proto import sluice_pb2 as pb

Metadata = Sequence[tuple[str, str]]
LISTED = "ipv4:"
MOST_ATTEMPTS = 5  # gRPC takes no more
LEAST_BACKOFF = 0.005  # with one of a millisecond gRPC 1.85 lost every other call that it was to send again
# Left alone, gRPC doubles its pauses up to two minutes, and as long a server that is back is not asked.
RECONNECT = (
    ("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 1_000),
    ("grpc.min_reconnect_backoff_ms", 5_000),  # for all its name, how long one try to connect may take
    ("grpc.dns_min_time_between_resolutions_ms", 1_000),
)


@dataclass(frozen=True)
class Delivery:
    """`attempts` of a call, 1 to send it once; backoff doubles from `backoff_seconds`, with gRPC's own jitter.
    `hedge_seconds` None hedges nothing. Raises ConfigError for what gRPC does not take."""

    attempts: int = 1
    again: tuple[str, ...] = ("UNAVAILABLE", "RESOURCE_EXHAUSTED")
    backoff_seconds: float = 0.02
    hedge_seconds: float | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.attempts <= MOST_ATTEMPTS:
            raise ConfigError(f"attempts is {self.attempts}, must lie between 1 and {MOST_ATTEMPTS}")
        if self.backoff_seconds < LEAST_BACKOFF:
            raise ConfigError(f"backoff_seconds is {self.backoff_seconds}, must be at least {LEAST_BACKOFF}")

    def target(self, addresses: str) -> str:
        """As gRPC names several. Raises ConfigError for names among them."""
        listed = [one.strip() for one in addresses.split(",")]
        if len(listed) == 1:
            return addresses
        for one in listed:
            try:
                ipaddress.IPv4Address(one.rpartition(":")[0])
            except ValueError:
                raise ConfigError(f"{one!r} is no IPv4 address with a port, and only those can be listed; give a name "
                                  "of several addresses, as in dns:///ranking:50051") from None
        return LISTED + ",".join(listed)

    def options(self, target: str) -> list[tuple[str, Any]]:
        """gRPC's words for it; those of RECONNECT alone where there is one address to be asked once."""
        if self.attempts == 1 and not target.startswith((LISTED, "dns:")):
            return [*RECONNECT]
        policy = {"maxAttempts": self.attempts, "initialBackoff": f"{self.backoff_seconds}s", "maxBackoff": "1s",
                  "backoffMultiplier": 2, "retryableStatusCodes": list(self.again)}
        names = [{"service": one.full_name} for one in pb.DESCRIPTOR.services_by_name.values()]
        method: dict[str, Any] = {"name": names}
        if self.attempts > 1:
            method["retryPolicy"] = policy
        config = {"loadBalancingConfig": [{"round_robin": {}}], "methodConfig": [method]}
        return [*RECONNECT, ("grpc.service_config", json.dumps(config))]


ONCE = Delivery()


def hedged(method: Any, request: Message, seconds: float, metadata: Metadata, after: float | None) -> Any:
    """The answer of a method of a blocking stub. Raises grpc.RpcError."""
    if after is None:
        return method(request, timeout=seconds, metadata=metadata)
    moved = threading.Event()
    calls = [_sent(method, request, seconds, metadata, moved)]
    if not moved.wait(after):
        calls.append(_sent(method, request, seconds - after, metadata, moved))
    while True:
        moved.wait()
        moved.clear()
        ended = [call for call in calls if call.done()]
        good = next((call for call in ended if call.code() is grpc.StatusCode.OK), None)
        if good is not None or len(ended) == len(calls):
            for call in calls:
                call.cancel()
            return (good or ended[-1]).result()


def _sent(method: Any, request: Message, seconds: float, metadata: Metadata, moved: threading.Event) -> Any:
    call = method.future(request, timeout=seconds, metadata=metadata)
    call.add_done_callback(lambda _: moved.set())
    return call


async def hedged_async(method: Any, request: Message, seconds: float, metadata: Metadata, after: float | None) -> Any:
    """The same, of an asynchronous stub."""
    if after is None:
        return await method(request, timeout=seconds, metadata=metadata)
    calls = [_begun(method, request, seconds, metadata)]
    try:
        await asyncio.wait(calls, timeout=after)
        if not calls[0].done():
            calls.append(_begun(method, request, seconds - after, metadata))
        waiting = set(calls)
        while waiting:
            ended, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            good = next((call for call in ended if call.exception() is None), None)
            if good is not None:
                return good.result()
        return calls[-1].result()
    finally:
        for call in calls:
            call.cancel()


def _begun(method: Any, request: Message, seconds: float, metadata: Metadata) -> asyncio.Task[Any]:
    async def answer() -> Any:
        return await method(request, timeout=seconds, metadata=metadata)

    return asyncio.ensure_future(answer())
