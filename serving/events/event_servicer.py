"""The Events service: `RecordEvents`, each event with an error of its own, the others durable when it answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import grpc

from contracts.config.stages import Serve
from contracts.features.event_features import EventFeatures
from serving.events.event_checks import check_events
from serving.events.event_recorder import EventRecorder, NotKept, TooMany
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.request.batch_turns import BatchTurns, TooManyBatches
from serving.request.message_bounds import OutOfBounds

NO_STORE = "this server keeps no events; start it with `sluice serve --fresh FOLDER`"
NO_FEATURES = ("the bundle's log cannot be recorded event by event: it needs label.clicks, log.key within "
               "label.clicks.on, and known_time of both; set them, and assemble the bundle again")
Told = Callable[[Sequence[str]], None]


def nobody(kinds: Sequence[str]) -> None:
    """Hears nothing."""


def now_micros() -> int:
    """Since 1970."""
    return time.time_ns() // 1000


class EventServicer(sluice_pb2_grpc.EventsServicer):
    """`recorder` None: nothing is kept, and every call is told `why`. `told` hears of the kinds of new events."""

    def __init__(
        self, serve: Serve, features: EventFeatures | None = None, recorder: EventRecorder | None = None,
        why: str = NO_STORE, turns: BatchTurns | None = None, told: Told = nobody,
    ) -> None:
        self._serve, self._features, self._recorder, self._why, self._told = serve, features, recorder, why, told
        self._turns = turns or BatchTurns()

    async def RecordEvents(
        self, request: pb.RecordEventsRequest, context: grpc.aio.ServicerContext
    ) -> pb.RecordEventsResponse:
        """Answers once they are on the disk; what fails as a whole is a status."""
        recorder, features = self._recorder, self._features
        if recorder is None or features is None:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, self._why)
            raise AssertionError("abort raises")
        try:
            checked = await self._turns.take(lambda: check_events(request, features, self._serve, now_micros()))
            recorded = await recorder.record(checked.events, request.ByteSize())
        except OutOfBounds as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        except (TooMany, TooManyBatches) as error:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
        except NotKept as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        self._told([kind.name.lower() for kind in recorded.kinds])
        return pb.RecordEventsResponse(recorded=recorded.new, repeats=recorded.repeats, errors=checked.errors)
