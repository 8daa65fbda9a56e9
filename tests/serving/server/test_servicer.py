"""What the Ranking service makes of a request: an answer or a status that tells whose fault it is, and a row in the
log of either."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import grpc
import pyarrow.dataset as ds
import pytest

from serving.bundle.loaded_bundle import LoadedBundle
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.request.deadline import Deadline
from serving.request.query import RankAnswer, RankQuery
from serving.server.client import RankingClient, RankingFailed
from serving.server.response_log import ResponseLog
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel, Trace
from tests.serving.in_process_server import InProcessServer


class Broken(Funnel):
    """A funnel with a defect that one user finds."""

    def rank(self, query: RankQuery, deadline: Deadline, trace: Trace | None = None) -> RankAnswer:
        if query.user == "trouble":
            raise ZeroDivisionError("a secret of the inside")
        return super().rank(query, deadline, trace)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("answers")


@pytest.fixture(scope="module")
def servicer(loaded: LoadedBundle, folder: Path) -> Iterator[RankingServicer]:
    log = ResponseLog(folder, flush_seconds=0.05)
    made = RankingServicer(Broken(loaded), loaded.manifest, 3, 60_000, log)
    yield made
    made.close()
    log.close()


@pytest.fixture(scope="module")
def client(servicer: RankingServicer) -> Iterator[RankingClient]:
    with InProcessServer(servicer) as server, RankingClient(server.target) as client:
        yield client


def test_a_request_is_answered_under_its_own_id_and_the_default_limit(
    client: RankingClient, servicer: RankingServicer, loaded: LoadedBundle
) -> None:
    before = servicer.taken
    answer = client.rank("u01", request_id="mine", seconds=20)
    assert (answer.request_id, answer.bundle_version, len(answer.items)) == ("mine", loaded.version, 3)
    assert servicer.taken == before + 1


def test_requests_without_an_id_get_ids_of_their_own(client: RankingClient) -> None:
    ids = {client.rank("u01", seconds=20).request_id for _ in range(3)}
    assert len(ids) == 3
    assert "" not in ids


def test_the_callers_fault_names_the_field(client: RankingClient) -> None:
    with pytest.raises(RankingFailed) as caught:
        client.rank("u01", limit=0, seconds=20)
    assert (caught.value.code, list(caught.value.fields)) == ("INVALID_ARGUMENT", ["limit"])


def test_the_servers_fault_is_told_without_its_inside(client: RankingClient) -> None:
    with pytest.raises(RankingFailed) as caught:
        client.rank("trouble", seconds=20)
    assert caught.value.code == "INTERNAL"
    assert "secret" not in str(caught.value)


def test_without_a_deadline_of_the_callers_the_servers_own_holds(loaded: LoadedBundle) -> None:
    hasty = RankingServicer(Funnel(loaded), loaded.manifest, 3, 0)
    with InProcessServer(hasty) as server, grpc.insecure_channel(server.target) as channel:
        rank = sluice_pb2_grpc.RankingStub(channel).Rank
        with pytest.raises(grpc.RpcError, match="had passed before the first stage"):
            rank(pb.RankRequest(user_id="u01"))
        assert rank(pb.RankRequest(user_id="u01"), timeout=20).items
    hasty.close()


def test_while_refusing_nothing_is_begun(client: RankingClient, servicer: RankingServicer) -> None:
    servicer.refusing = True
    try:
        with pytest.raises(RankingFailed) as caught:
            client.rank("u01", seconds=20)
    finally:
        servicer.refusing = False
    assert caught.value.code == "UNAVAILABLE"
    assert client.rank("u01", seconds=20).items


def test_every_outcome_is_logged(client: RankingClient, servicer: RankingServicer, folder: Path) -> None:
    wanted = {"fine": "OK", "bad": "INVALID_ARGUMENT", "broken": "INTERNAL"}
    client.rank("u01", limit=2, request_id="fine", seconds=20)
    for user, limit, name in (("u01", 0, "bad"), ("trouble", 1, "broken")):
        with pytest.raises(RankingFailed):
            client.rank(user, limit=limit, request_id=name, seconds=20)
    rows: dict[str, str] = {}
    while not wanted.keys() <= rows.keys():
        found = ds.dataset(folder, format="parquet").to_table(columns=["request_id", "status"]).to_pylist()
        rows = {row["request_id"]: row["status"] for row in found}
    assert {name: rows[name] for name in wanted} == wanted
