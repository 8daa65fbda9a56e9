"""Events at work in one process: what records them, what reads them for requests, what lands them.

    FOLDER/events.db    the events of the host, shared by its workers
    ADDRESS             a Redis whose stream brings events, besides `RecordEvents`
    FOLDER/log/         where they are landed: `sluice features CONFIG --data FOLDER/log`
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import grpc
import redis

from contracts.config.stages import Serve
from contracts.features.event_features import EventFeatures
from serving.access.caller_name import Who
from serving.batches.batch_turns import BatchTurns
from serving.batches.sized_server import BatchBounds, SizedServer
from serving.events.event_keeper import EventKeeper
from serving.events.event_recorder import EventRecorder, Refused, Told, nobody, unheeded
from serving.events.event_servicer import NO_FEATURES, NO_STORE, EventServicer, now_micros
from serving.events.event_store import EventStore, unheard
from serving.events.event_stream import EventStream
from serving.events.event_users import EventUsers
from serving.events.stream_reader import StreamReader
from serving.proto import sluice_pb2_grpc
from serving.redis_store.address import waiting_client
from serving.request.message_bounds import largest_message
from serving.request.timed_read import TimedServer

LOG = "log"


class EventRoom:
    """`folder` None, or a bundle whose log cannot be recorded (`features` None): `RecordEvents` says so, and requests
    are answered from the bundle's tables. `told` hears of the kinds of new events, `who` names callers, who share the
    turns of batches and what waits for the disk, `was_late` hears of commits that took too long, `refuses`
    of refused events. Raises DataError where the folder cannot be used, ConfigError where `stream` is no address."""

    def __init__(
        self, folder: Path | None, features: EventFeatures | None, serve: Serve, told: Told = nobody,
        who: Who | None = None, stream: str | None = None, was_late: Callable[[], None] = unheard,
        refuses: Refused = unheeded,
    ) -> None:
        self.users: EventUsers | None = None
        self._reader: StreamReader | None = None
        self._recorder: EventRecorder | None = None
        self._keeper: EventKeeper | None = None
        taken = features if folder else None
        if folder is not None and features is not None:
            def opened() -> EventStore:
                return EventStore(folder, features, now_micros, was_late=was_late)

            with closing(opened()) as store:
                taken = features.also(store.columns)
            self._recorder = EventRecorder(opened, now_micros, told=told)
            self._keeper = EventKeeper(opened, features, folder / LOG, now_micros)
            self.users = EventUsers(opened, features, now_micros)
            if stream is not None:
                self._reader = read_stream(waiting_client(stream), opened, features, serve, told, folder, refuses)
        why = NO_STORE if folder is None else NO_FEATURES
        self._servicer = EventServicer(serve, taken, self._recorder, why, who, refuses)
        self._bounds = BatchBounds(largest=largest_message(serve), entries=serve.max_events, setting="max_events")
        self._turns, self._who = BatchTurns(), who

    def add_to(self, server: grpc.aio.Server | TimedServer) -> None:
        """The service, whose batches take turns of their own."""
        sized = SizedServer(server, self._bounds, self._turns, self._servicer.read, self._who)
        sluice_pb2_grpc.add_EventsServicer_to_server(self._servicer, sized)

    def close(self) -> None:
        """What has come is on the disk, and landed."""
        self._turns.close()
        if self.users is not None:
            self.users.close()
        if self._reader is not None:
            self._reader.close()
        if self._recorder is not None and self._keeper is not None:
            self._recorder.close()
            self._keeper.close()


def read_stream(
    client: redis.Redis, opened: Callable[[], EventStore], features: EventFeatures, serve: Serve, told: Told,
    folder: Path, refuses: Refused,
) -> StreamReader:
    """Reads until it is closed."""
    def begun() -> tuple[EventStream, Callable[[], None]]:
        with ExitStack() as until_begun:
            store = until_begun.enter_context(closing(opened()))
            stream = EventStream(client, store, features, serve, told, refuses)
            until_begun.pop_all()

        def end() -> None:
            store.close()
            client.close()

        return stream, end

    return StreamReader(begun, folder)
