"""Answers of an echo server to messages one after the other, by either caller."""

from __future__ import annotations

import asyncio
import time

from benchmarks.wire.blocking_caller import BlockingCaller
from benchmarks.wire.wire_caller import Target, WireCaller
from tests.benchmarks.wire.echo_server import METHOD


def asked_blocking(port, *messages, seconds=10.0, path=METHOD, pause=0.0):
    """Over one caller on a socket."""
    with BlockingCaller(Target("127.0.0.1", port, path)) as caller:
        found = []
        for message in messages:
            found.append(caller.ask(message, seconds))
            time.sleep(pause)
    return found


def asked_in_a_loop(port, *messages, seconds=10.0, path=METHOD, pause=0.0):
    """Over one caller of an event loop."""
    async def ask():
        caller, found = WireCaller(Target("127.0.0.1", port, path)), []
        for message in messages:
            found.append(await caller.ask(message, seconds))
            await asyncio.sleep(pause)
        caller.close()
        return found

    return asyncio.run(ask())
