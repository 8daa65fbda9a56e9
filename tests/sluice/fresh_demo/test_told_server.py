"""Without a server; with one: test_fresh_demo.py."""

from __future__ import annotations

import pytest

from contracts.errors import SluiceError
from serving.proto import sluice_pb2 as pb
from serving.server.connection import RankingFailed
from sluice.fresh_demo.told_server import ToldServer, require_taken
from tests.sluice.fresh_demo.small_hour import LIMIT, small_hour


def test_a_change_that_is_refused_ends_the_hour_with_its_reason() -> None:
    taken = pb.ChangeResult(item_id="i_1", outcome=pb.ChangeResult.APPLIED)
    require_taken(pb.ChangeResponse(results=[taken]))
    refused = pb.ChangeResult(item_id="i_2", outcome=pb.ChangeResult.REFUSED, field="bid", problem="is negative")
    with pytest.raises(SluiceError, match="i_2: bid is negative"):
        require_taken(pb.ChangeResponse(results=[taken, refused]))


def test_where_nothing_changes_nobody_is_called_and_where_nobody_listens_a_visit_fails() -> None:
    hour = small_hour()
    with ToldServer("127.0.0.1:9", hour.truth.values["item"], {}) as server:
        server.tell([])
        assert (server.changes, server.events, server.slowest) == (0, 0, 0.0)
        with pytest.raises(RankingFailed):
            server.ask(hour.visits[0], LIMIT)
