"""The Events service: `RecordEvents`, each event with an error of its own, the others durable when it answers."""

from __future__ import annotations

import time

import grpc

from contracts.config.stages import Serve
from contracts.features.event_features import EventFeatures
from serving.access.caller_name import Who, caller_name
from serving.events.event_checks import Checked, check_events
from serving.events.event_recorder import EventRecorder, NotKept, Refused, TooMany, unheeded
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc

NO_STORE = "this server keeps no events; start it with `sluice serve --fresh FOLDER`"
NO_FEATURES = ("the bundle's log cannot be recorded event by event: it needs label.clicks, log.key within "
               "label.clicks.on, no time of the event nor a column derived from it in either, and known_time of both; "
               "set them, and assemble the bundle again")


def now_micros() -> int:
    """Since 1970."""
    return time.time_ns() // 1000


class EventServicer(sluice_pb2_grpc.EventsServicer):
    """`recorder` None: nothing is kept, and every call is told `why`. `who` names callers, who share what may wait."""

    def __init__(
        self, serve: Serve, features: EventFeatures | None = None, recorder: EventRecorder | None = None,
        why: str = NO_STORE, who: Who | None = None, refuses: Refused = unheeded,
    ) -> None:
        self._serve, self._features, self._recorder, self._why = serve, features, recorder, why
        self._refuses = refuses
        self._who = who or caller_name(None)

    def read(self, request: pb.RecordEventsRequest) -> Checked:
        """In its turn (serving/batches/sized_server.py). Raises OutOfBounds."""
        if self._features is None:
            return Checked([], [])
        return check_events(request, self._features, self._serve, now_micros())

    async def RecordEvents(self, checked: Checked, context: grpc.aio.ServicerContext) -> pb.RecordEventsResponse:
        """Answers once they are on the disk; what fails as a whole is a status."""
        if self._recorder is None:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, self._why)
            raise AssertionError("abort raises")
        try:
            recorded = await self._recorder.record(checked.events, checked.size, self._who(context))
        except TooMany as error:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
        except NotKept as error:
            await context.abort(grpc.StatusCode.UNAVAILABLE, str(error))
        if checked.errors:
            self._refuses("call", len(checked.errors))
        return pb.RecordEventsResponse(recorded=recorded.new, repeats=recorded.repeats, errors=checked.errors)
