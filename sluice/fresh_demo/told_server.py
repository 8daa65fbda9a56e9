"""The calls of the hour to one server: changes of items until they are shown, slates, events."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import groupby
from typing import Self

import numpy as np

from contracts.errors import SluiceError
from serving.proto import sluice_pb2 as pb
from serving.request.query import ContextValue
from serving.server.catalog_client import CatalogClient, ItemChange
from serving.server.client import RankingClient
from serving.server.events_client import EventsClient, ItemEvent
from sluice.fresh_demo.hour import TimedVisit
from sluice.fresh_demo.shelf import Change

SHOWN_SECONDS, ANSWER_SECONDS = 10.0, 5.0
Values = Mapping[str, ContextValue]


class ToldServer:
    """`items` are the ids of the hour's items, `described` the values of those that the bundle does not know, by their
    codes. `changes` and `events` count what was sent; `slowest` is how long a batch took to be shown, in seconds."""

    def __init__(self, target: str, items: Sequence[str], described: Mapping[int, Values]) -> None:
        self._items, self._described = items, described
        self._ranking, self._catalog = RankingClient(target), CatalogClient(target)
        self._recorder, self._open = EventsClient(target), ExitStack()
        self.changes = self.events = 0
        self.slowest = 0.0

    def __enter__(self) -> Self:
        for client in (self._ranking, self._catalog, self._recorder):
            self._open.enter_context(client)
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def tell(self, changes: Sequence[Change]) -> None:
        """Returns when the server shows them. Raises SluiceError on one that is refused, and where that takes long."""
        if not changes:
            return
        begun = time.monotonic()
        calls = {"upsert": self._catalog.upsert, "withdraw": self._catalog.withdraw,
                 "set_bids": self._catalog.set_bids, "set_stock": self._catalog.set_stock}
        for kind, of_kind in groupby(changes, lambda change: change.kind):
            answer = calls[kind]([self._sent(change) for change in of_kind])
            require_taken(answer)
        while self._catalog.status().applied_sequence < answer.sequence:
            if time.monotonic() > begun + SHOWN_SECONDS:
                raise SluiceError(f"the server does not show {len(changes)} changes of items after {SHOWN_SECONDS:g} s")
            time.sleep(0.005)
        self.slowest = max(self.slowest, time.monotonic() - begun)

    def ask(self, visit: TimedVisit, limit: int) -> list[str]:
        """Item ids, best first. Raises RankingFailed."""
        answer = self._ranking.rank(visit.who.user, context=visit.who.context, limit=limit, seconds=ANSWER_SECONDS,
                                    skip_rerank=not visit.auction, request_id=_request(visit))
        return [item.item_id for item in answer.items]

    def logits(self, visit: TimedVisit, items: np.ndarray, history: np.ndarray) -> np.ndarray:
        """Of items, float64 [N], for a user who has clicked `history` last; both are codes. Raises RankingFailed."""
        asked, recent = ([self._items[code] for code in codes] for codes in (items, history))
        answer = self._ranking.score(visit.who.user, asked, context=visit.who.context, recent_items=recent,
                                     seconds=ANSWER_SECONDS)
        probabilities = np.array(answer.probabilities)
        return np.asarray(np.log(probabilities / (1 - probabilities)))

    def record(self, visit: TimedVisit, shown: Sequence[str], bids: Sequence[float], clicked: Sequence[bool]) -> None:
        """What was shown, and what was clicked of it. Raises SluiceError on an event that is refused."""
        columns = {name: visit.who.context[name] for name in ("device", "placement")}
        request, user = _request(visit), visit.who.user
        events = [
            ItemEvent(id=f"s-{request}-{place}", kind="impression", user=user, item=item, request=request,
                      position=place, bid=bid, columns=columns)
            for place, (item, bid) in enumerate(zip(shown, bids, strict=True), start=1)]
        events += [ItemEvent(id=f"c-{request}-{item}", kind="click", user=user, item=item, request=request)
                   for item, hit in zip(shown, clicked, strict=True) if hit]
        if not events:
            return
        for error in self._recorder.record(events).errors:
            raise SluiceError(f"the server refused event {error.event_id}: {error.field} {error.problem}")
        self.events += len(events)

    def _sent(self, change: Change) -> ItemChange:
        self.changes += 1
        number = change.number
        return ItemChange(
            item=self._items[change.item], version=self.changes, values=self._described.get(change.item),
            bid=number if change.kind in ("upsert", "set_bids") else None,
            stock=number if change.kind == "set_stock" else None)


def _request(visit: TimedVisit) -> str:
    return f"hour-{visit.number:06d}"


def require_taken(answer: pb.ChangeResponse) -> None:
    """Raises SluiceError on a change that was not applied."""
    for one in answer.results:
        if one.outcome != pb.ChangeResult.APPLIED:
            raise SluiceError(f"the server did not take a change of {one.item_id}: {one.field} {one.problem}")
