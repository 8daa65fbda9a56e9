"""Changes of items that one host has taken, sent to another: read from the host's folder, in the order of their
commits, with the versions that they have.

A change that the other has, or knows better, changes nothing there, so that several may ship to each other, again and
in any order; all hosts agree once each has what each was told. How far a target has come is kept in the folder, and is
forgotten where the target has lost its own.
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
from sluice.release.shipped_positions import Position, ShippedPositions

AT_ONCE = 500
LOOK_SECONDS, AGAIN_SECONDS = 0.2, 2.0
BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
AWAY = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED")
Told = Callable[[Counter[str]], None]


def ship(folder: Path, target: str, client: CatalogClient) -> Counter[str]:
    """All that the target has not been sent; how many were applied, superseded, refused. Raises RankingFailed as
    gRPC does, and DataError without changes in the folder."""
    if not (folder / FILE).exists():
        raise DataError(f"{folder} holds no {FILE}; name the folder of a server's --fresh")
    with closing(ChangeStore(folder)) as store, closing(ShippedPositions(folder)) as positions:
        outcomes, position = Counter[str](), positions.of(target)
        if client.status().stored_sequence < position.theirs:
            position = Position()
        while found := store.after(position.sequence, AT_ONCE):
            for answer in _sent(client, [change for _, change in found]):
                outcomes.update(pb.ChangeResult.Outcome.Name(one.outcome).lower() for one in answer.results)
                position = Position(position.sequence, max(position.theirs, answer.sequence))
            position = Position(found[-1][0], position.theirs)
            positions.put(target, position)
        return outcomes


def follow(
    folder: Path, target: str, client: CatalogClient, told: Told, away: Callable[[RankingFailed], None]
) -> None:
    """`ship`, again and again, until it is interrupted; a target that is away is tried again."""
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
        if outcomes:
            told(outcomes)
        time.sleep(LOOK_SECONDS)


def _sent(client: CatalogClient, changes: Sequence[Change]) -> Iterator[pb.ChangeResponse]:
    """A call for each run of changes of one method, in their order."""
    for method, run in groupby(changes, _method):
        send = {"withdraw": client.withdraw, "item": client.upsert, "bid": client.set_bids,
                "stock": client.set_stock}[method]
        yield send([_item_change(change) for change in run])


def _method(change: Change) -> str:
    return "withdraw" if change.withdraws else change.kind


def _item_change(change: Change) -> ItemChange:
    number = change.number if change.kind != "item" else None
    return ItemChange(
        item=change.item, version=change.version, event_time=BEGIN + timedelta(microseconds=change.event_time),
        values=change.values if change.kind == "item" else None, bid=number if change.kind == "bid" else None,
        stock=number if change.kind == "stock" else None)
