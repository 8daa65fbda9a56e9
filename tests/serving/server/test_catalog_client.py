from __future__ import annotations

from datetime import UTC, datetime

import grpc
import pytest

from contracts.errors import SluiceError
from serving.server.catalog_client import CatalogClient, ItemChange
from serving.server.connection import RankingFailed


def test_what_every_change_says() -> None:
    head = ItemChange(item="i", version=3, event_time=datetime(2026, 1, 2, tzinfo=UTC)).head()
    assert (head.item_id, head.version, head.event_time.ToMicroseconds()) == ("i", 3, 1_767_312_000_000_000)
    assert not ItemChange(item="i", version=3).head().HasField("event_time")


def test_a_server_that_is_not_there_is_a_failure_with_its_status() -> None:
    with CatalogClient("127.0.0.1:1") as client, pytest.raises(RankingFailed) as failed:
        client.withdraw([ItemChange(item="i", version=1)], seconds=0.2)
    assert failed.value.code in (grpc.StatusCode.UNAVAILABLE.name, grpc.StatusCode.DEADLINE_EXCEEDED.name)


@pytest.mark.parametrize("name", ["bid", "stock"])
def test_a_forgotten_number_is_refused_and_zero_is_sent(name: str) -> None:
    """Zero comes as far as the server, which is not there."""
    forgotten = {"bid": ItemChange(item="i", version=1, stock=1.0), "stock": ItemChange(item="i", version=1, bid=1.0)}
    with CatalogClient("127.0.0.1:1") as client:
        send = {"bid": client.set_bids, "stock": client.set_stock}[name]
        with pytest.raises(SluiceError, match=f"the change of 'i' has no {name}; give one"):
            send([forgotten[name]], seconds=0.2)
        with pytest.raises(RankingFailed):
            send([ItemChange(item="i", version=1, bid=0.0, stock=0.0)], seconds=0.2)
