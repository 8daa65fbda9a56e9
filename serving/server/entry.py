"""The Ranking service as handlers of gRPC that can say no before a request is read.

A call with one request looks on the wire like a stream of one. Taken as a stream, its handler begins as soon as the
call is there: a refusal costs neither the message's way up nor its parsing nor an answer. Callers see no difference.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message

from serving.access.role import RANKING_SERVICE
from serving.batches.wire_parts import parts_of
from serving.proto import sluice_pb2 as pb
from serving.request.message_bounds import NO_REQUEST, OutOfBounds, too_large
from serving.request.timed_read import NOTHING, Admit, anybody, read_within
from serving.server.servicer import RankingServicer

METHODS = ("Rank", "Score", "WhyNot")
Method = Callable[[Any, grpc.aio.ServicerContext], Awaitable[Message]]  # named as in the proto


def add_to_server(servicer: RankingServicer, server: grpc.aio.Server, admit: Admit = anybody) -> None:
    """As the generated function would, but with the entry before each method, and by name alone (`ByName`). What
    `admit` raises ends a call that it does not let in."""
    taken = {"Rank": pb.RankRequest, "Score": pb.ScoreRequest, "WhyNot": pb.WhyNotRequest}
    handlers = {name: _entered(servicer, getattr(servicer, name), taken[name], admit) for name in METHODS}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(RANKING_SERVICE, handlers),))


def _entered(
    servicer: RankingServicer, method: Method, taken: type[Message], admit: Admit
) -> grpc.RpcMethodHandler:
    unread = partial(servicer.unread, method.__name__)

    async def handle(_: object, context: grpc.aio.ServicerContext) -> Message:
        why = servicer.enter(method.__name__, context)
        if why:
            unread("RESOURCE_EXHAUSTED", context)
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, why)
        try:
            await admit(context)
        except grpc.aio.AbortError:
            unread("RESOURCE_EXHAUSTED", context)
            raise
        try:
            sent = await read_within(servicer.patience, context)
        except grpc.aio.AbortError:
            unread("DEADLINE_EXCEEDED", context)
            raise
        except BaseException as error:  # the caller has gone, or sent too much
            unread("CANCELLED" if isinstance(error, asyncio.CancelledError) else "INVALID_ARGUMENT", context)
            raise
        if isinstance(sent, bytes) and len(sent) > servicer.largest:
            unread("INVALID_ARGUMENT", context)
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, too_large(len(sent), servicer.largest))
        try:
            request = _unpacked(sent, taken, servicer.most_parts)
        except OutOfBounds as error:
            unread("INVALID_ARGUMENT", context)
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except (DecodeError, TypeError):  # gRPC would call it UNKNOWN, and log a traceback
            unread("INVALID_ARGUMENT", context)
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, NOTHING if sent is grpc.aio.EOF else NO_REQUEST)
        return await method(request, context)

    return grpc.stream_unary_rpc_method_handler(handle, None, _written)


def _unpacked(sent: bytes, taken: type[Message], most: int) -> Message:
    """Raises OutOfBounds for more than `most` parts, before there are any; DecodeError or TypeError for no message."""
    if len(sent) > 2 * most and parts_of(sent, taken.DESCRIPTOR, most) > most:
        raise OutOfBounds("the request", f"holds more than {most} values; send fewer at once")
    return taken.FromString(sent)


def _written(answer: Message) -> bytes:
    return answer.SerializeToString()
