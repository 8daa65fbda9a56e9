"""A gRPC server of services whose requests are batches: parsed and checked in their turns, one at a time.

What is too large, holds too much or is no request is refused with a status that says so, before anything of it is
unpacked. Small requests of few entries are read at once: an event or a question for the state waits for no batch.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc
from google.protobuf.descriptor import Descriptor
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import DecodeError, Message

from contracts.errors import RequestError
from serving.access.caller_name import Who, caller_name
from serving.batches.batch_turns import BatchTurns
from serving.batches.places import NoPlace
from serving.batches.wire_parts import fields_of, parts_of
from serving.request.message_bounds import NO_REQUEST, OutOfBounds, too_large
from serving.request.timed_read import TimedServer

SMALL_BYTES, FEW = 512, 4  # of a request that is read at once, and entries
MOST_PARTS = 100_000  # messages and listed texts of one batch: some 10 MB of memory
Read = Callable[[Any], Any]


def as_it_is(request: Message) -> Message:
    """Nothing to be checked."""
    return request


@dataclass(frozen=True, kw_only=True)
class BatchBounds:
    """Of one service: bytes of a message, and entries of a batch, whose limit is called `setting`."""

    largest: int
    entries: int
    setting: str
    parts: int = MOST_PARTS


class SizedServer:
    """Stands for `server` where generated code adds a service of calls with one request and one answer. What `read`
    makes of a request is what the service's methods are given; it may raise RequestError.

    A message of too many bytes is RESOURCE_EXHAUSTED, as gRPC has it for those beyond its own limit, as is one for
    which there is no place in the line; what is no request, or of too many entries or parts, is INVALID_ARGUMENT.
    """

    def __init__(
        self, server: grpc.aio.Server | TimedServer, bounds: BatchBounds, turns: BatchTurns, read: Read = as_it_is,
        who: Who | None = None,
    ) -> None:
        self._server, self._bounds, self._turns, self._read = server, bounds, turns, read
        self._who = who or caller_name(None)

    def add_generic_rpc_handlers(self, handlers: object) -> None:
        """Generated code gives the same handlers once more by name; those are taken."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, grpc.RpcMethodHandler]) -> None:
        """All of one service."""
        methods = Default().FindServiceByName(service).methods_by_name
        sized = {name: self._sized(handler, methods[name].input_type) for name, handler in handlers.items()}
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, sized),))
        self._server.add_registered_method_handlers(service, sized)

    def _sized(self, handler: grpc.RpcMethodHandler, taken: Descriptor) -> grpc.RpcMethodHandler:
        parse, answer = handler.request_deserializer, handler.unary_unary

        async def handle(sent: bytes, context: grpc.aio.ServicerContext) -> Any:
            if len(sent) > self._bounds.largest:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, too_large(len(sent), self._bounds.largest))
            try:
                made = await self._in_turn(partial(self._made, parse, taken, sent), sent, context)
            except DecodeError:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, NO_REQUEST)
            except RequestError as error:
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            except NoPlace as error:
                await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
            return await answer(made, context)

        return grpc.unary_unary_rpc_method_handler(handle, None, handler.response_serializer)

    def _in_turn(
        self, work: Callable[[], Any], sent: bytes, context: grpc.aio.ServicerContext
    ) -> Awaitable[Any]:
        if len(sent) <= SMALL_BYTES and fields_of(sent, FEW) <= FEW:
            return _at_once(work)
        return self._turns.take(self._who(context), work)

    def _made(self, parse: Callable[[bytes], Message], taken: Descriptor, sent: bytes) -> Any:
        """Parsed, checked, and let go, so that one batch is unpacked at a time."""
        bounds = self._bounds
        if fields_of(sent, bounds.entries) > bounds.entries:
            raise OutOfBounds("the batch", f"has more than {bounds.entries} entries, as many as serve.{bounds.setting} "
                                           "allows; send fewer")
        if len(sent) > 2 * bounds.parts and parts_of(sent, taken, bounds.parts) > bounds.parts:
            raise OutOfBounds("the batch", f"holds more than {bounds.parts} values; send fewer at once")
        return self._read(parse(sent))


async def _at_once(work: Callable[[], Any]) -> Any:
    return work()
