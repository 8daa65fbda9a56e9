"""Changes of items that one host has taken, sent to another: read from the host's folder, in the order of their
commits, with the versions that they have.

A change that the other has, or knows better, changes nothing there, so that several may ship to each other, again and
in any order; all hosts agree once each has what each was told. How far a target has come is kept in the folder, and is
forgotten where the target has lost its own. So is what it refused, as of fields that its bundle does not have: that is
sent again once its bundle is another one, and every REFUSED_SECONDS, unless a later change has replaced it. It keeps
nothing that is new waiting.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path

from contracts.errors import DataError
from serving.catalogue.change import Change
from serving.catalogue.change_store import FILE, ChangeStore
from serving.proto import sluice_pb2 as pb
from serving.server.catalog_client import CatalogClient, ItemChange
from serving.server.connection import RankingFailed
from sluice.release.shipped_positions import Position, ShippedPositions, Tried

AT_ONCE = 500
LOOK_SECONDS, AGAIN_SECONDS, REFUSED_SECONDS = 0.2, 2.0, 60
BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
AWAY = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED")
TOO_LARGE = ("larger than max", "the batch: has more", "the batch: holds more")  # of gRPC, of the server
REFUSED, STILL_REFUSED = "refused", "still refused"
Told = Callable[[Counter[str]], None]
Numbered = tuple[int, Change]


def ship(folder: Path, target: str, client: CatalogClient) -> Counter[str]:
    """All that the target has not been sent, and what it refused where it is time for that; how many were applied,
    superseded, refused, and still refused. Raises RankingFailed as gRPC does, and DataError without changes in the
    folder."""
    if not (folder / FILE).exists():
        raise DataError(f"{folder} holds no {FILE}; name the folder of a server's --fresh")
    with closing(ChangeStore(folder)) as store, closing(ShippedPositions(folder)) as positions:
        shipment = Shipment(store, positions, target, client)
        shipment.send_new()
        shipment.send_refused()
        return shipment.outcomes


class Shipment:
    """One round to one target."""

    def __init__(
        self, store: ChangeStore, positions: ShippedPositions, target: str, client: CatalogClient
    ) -> None:
        self._store, self._positions, self._target, self._client = store, positions, target, client
        self.outcomes, self._position, status = Counter[str](), positions.of(target), client.status()
        self._now = Tried(status.bundle_version, int(time.time()))
        if status.store_mark != positions.mark(target) or status.stored_sequence < self._position.theirs:
            self._position = positions.begin_again(target, status.store_mark)
        self._refused = positions.refused(target)

    def send_refused(self) -> None:
        """What was refused before this round, and what is new meanwhile."""
        before = self._positions.tried(self._target)
        soon = 0 <= self._now.seconds - before.seconds < REFUSED_SECONDS
        refused = [] if soon and before.bundle == self._now.bundle else self._refused
        for start in range(0, len(refused), AT_ONCE):
            numbers = refused[start : start + AT_ONCE]
            self._send(self._store.numbered(numbers), numbers, STILL_REFUSED)
            self.send_new()
        if refused:
            self._positions.put_tried(self._target, self._now)

    def send_new(self) -> None:
        """Up to what was stored when this began: refused ones have their turn where more comes all the time."""
        last = self._store.last()
        while self._position.sequence < last and (found := self._store.after(self._position.sequence, AT_ONCE)):
            self._send(found, (), REFUSED, found[-1][0])
        if self.outcomes[REFUSED] and not self._refused:  # else those before say when they are sent again, all together
            self._positions.put_tried(self._target, self._now)

    def _send(self, found: Sequence[Numbered], settled: Sequence[int], refusal: str, reached: int = 0) -> None:
        """`settled` are refused ones that count no more as such, unless they are refused again."""
        refused, theirs = list[int](), self._position.theirs
        for run, answer in _sent(self._client, found):
            for (number, _), one in zip(run, answer.results, strict=True):
                if one.outcome == pb.ChangeResult.REFUSED:
                    refused.append(number)
                    self.outcomes[refusal] += 1
                else:
                    self.outcomes[pb.ChangeResult.Outcome.Name(one.outcome).lower()] += 1
            theirs = max(theirs, answer.sequence)
        self._position = Position(max(self._position.sequence, reached), theirs)
        self._positions.put(self._target, self._position, settled, refused)


def follow(
    folder: Path, target: str, client: CatalogClient, told: Told, away: Callable[[RankingFailed], None]
) -> None:
    """`ship`, again and again, until it is interrupted; a target that is away is tried again. What is refused once more
    is no news."""
    absent = False
    while True:
        try:
            outcomes = ship(folder, target, client)
        except RankingFailed as error:
            if error.code not in AWAY:
                raise
            if not absent:
                away(error)
            absent = True
            time.sleep(AGAIN_SECONDS)
            continue
        absent = False
        if set(outcomes) - {STILL_REFUSED}:
            told(outcomes)
        time.sleep(LOOK_SECONDS)


def _sent(client: CatalogClient, found: Sequence[Numbered]) -> Iterator[tuple[Sequence[Numbered], pb.ChangeResponse]]:
    """A call for each run of changes of one method, in their order; several where it is larger than the target reads.
    """
    for method, run in groupby(found, lambda one: _method(one[1])):
        send = {"withdraw": client.withdraw, "item": client.upsert, "bid": client.set_bids,
                "stock": client.set_stock}[method]
        yield from _in_parts(send, list(run))


def _in_parts(
    send: Callable[[Sequence[ItemChange]], pb.ChangeResponse], run: Sequence[Numbered]
) -> Iterator[tuple[Sequence[Numbered], pb.ChangeResponse]]:
    """Halves of halves; a change that alone is too large counts as refused."""
    try:
        yield run, send([_item_change(change) for _, change in run])
        return
    except RankingFailed as error:
        if not any(words in str(error) for words in TOO_LARGE):
            raise
        problem = str(error)
    if len(run) == 1:
        refused = pb.ChangeResult(item_id=run[0][1].item, outcome=pb.ChangeResult.REFUSED, problem=problem)
        yield run, pb.ChangeResponse(results=[refused])
        return
    for half in (run[: len(run) // 2], run[len(run) // 2 :]):
        yield from _in_parts(send, half)


def _method(change: Change) -> str:
    return "withdraw" if change.withdraws else change.kind


def _item_change(change: Change) -> ItemChange:
    number = change.number if change.kind != "item" else None
    return ItemChange(
        item=change.item, version=change.version, event_time=BEGIN + timedelta(microseconds=change.event_time),
        values=change.values if change.kind == "item" else None, bid=number if change.kind == "bid" else None,
        stock=number if change.kind == "stock" else None)
