"""Events at work in one process: what records them, what reads them for requests, what lands them.

    FOLDER/events.db    the events of the host, shared by its workers
    FOLDER/log/         where they are landed: `sluice features CONFIG --data FOLDER/log`
"""

from __future__ import annotations

from pathlib import Path

from contracts.config.stages import Serve
from contracts.features.event_features import EventFeatures
from serving.events.event_keeper import EventKeeper
from serving.events.event_recorder import EventRecorder
from serving.events.event_servicer import NO_FEATURES, NO_STORE, EventServicer, Told, nobody, now_micros
from serving.events.event_store import EventStore
from serving.events.event_users import EventUsers
from serving.proto import sluice_pb2_grpc
from serving.request.batch_turns import BatchTurns
from serving.request.sized_server import SizedServer

LOG = "log"


class EventRoom:
    """`folder` None, or a bundle whose log cannot be recorded (`features` None): `RecordEvents` says so, and requests
    are answered from the bundle's tables. `told` hears of the kinds of new events. Raises DataError where the folder
    cannot be used."""

    def __init__(
        self, folder: Path | None, features: EventFeatures | None, serve: Serve, turns: BatchTurns | None = None,
        told: Told = nobody,
    ) -> None:
        self.users: EventUsers | None = None
        self._recorder: EventRecorder | None = None
        self._keeper: EventKeeper | None = None
        if folder is not None and features is not None:
            def opened() -> EventStore:
                return EventStore(folder, features, now_micros)

            self._recorder = EventRecorder(opened, now_micros)
            self._keeper = EventKeeper(opened, features, folder / LOG, now_micros)
            self.users = EventUsers(opened(), features, now_micros)
        why = NO_STORE if folder is None else NO_FEATURES
        self._servicer = EventServicer(serve, features, self._recorder, why, turns, told)

    def add_to(self, server: SizedServer) -> None:
        sluice_pb2_grpc.add_EventsServicer_to_server(self._servicer, server)

    def close(self) -> None:
        """What has come is on the disk, and landed."""
        if self._recorder is not None and self._keeper is not None:
            self._recorder.close()
            self._keeper.close()
