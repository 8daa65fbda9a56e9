"""`sluice serve --fresh` over a real channel: stored before it is acknowledged, shown, and there after SIGKILL."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from typer.testing import CliRunner

from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue.catalog_servicer import CatalogServicer
from serving.catalogue.catalogue import Catalogue
from serving.catalogue.change import Change, encoded
from serving.catalogue.change_store import FILE, ChangeStore
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from sluice.cli import app
from sluice.demo.server_process import ServerProcess
from tests.serving.in_process_server import InProcessServer


def change(item: str, version: int = 1) -> pb.Change:
    return pb.Change(item_id=item, version=version)


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def shown(channel: grpc.Channel) -> list[str]:
    request = pb.RankRequest(user_id="u01", limit=10)
    return [item.item_id for item in sluice_pb2_grpc.RankingStub(channel).Rank(request, timeout=60).items]


@pytest.mark.slow
def test_changes_over_the_wire_outlive_the_server(bundle_folder: Path, tmp_path: Path) -> None:
    options = ("--fresh", str(tmp_path / "fresh"), "--workers", "1")
    server = ServerProcess(bundle_folder, tmp_path / "server.log", options=options)
    try:
        with grpc.insecure_channel(server.target) as channel:
            catalog, (first, second, *_) = sluice_pb2_grpc.CatalogStub(channel), shown(channel)
            told = catalog.Withdraw(pb.WithdrawRequest(items=[change(first), change("", 1)]), timeout=60)
            outcomes = [result.outcome for result in told.results]
            assert outcomes == [pb.ChangeResult.APPLIED, pb.ChangeResult.REFUSED]
            assert told.results[1].field == "change.item_id"
            until(lambda: catalog.Status(pb.CatalogStatusRequest(), timeout=60).applied_sequence >= told.sequence)
            assert first not in shown(channel)
            assert second in shown(channel)
            again = catalog.Withdraw(pb.WithdrawRequest(items=[change(first)]), timeout=60)
            assert again.results[0].outcome == pb.ChangeResult.SUPERSEDED
            new = pb.ItemUpsert(change=change("new"), values={"category": pb.Value(text="odd")}, bid=500.0)
            assert catalog.Upsert(pb.UpsertRequest(items=[new]), timeout=60).results[0].outcome == 1
            server.process.kill()
        server.process.wait()
        server = ServerProcess(bundle_folder, tmp_path / "again.log", options=options)
        with grpc.insecure_channel(server.target) as channel:
            status = sluice_pb2_grpc.CatalogStub(channel).Status(pb.CatalogStatusRequest(), timeout=60)
            assert (status.hidden_items, status.changed_items, status.failure) == (1, 1, "")
            assert first not in shown(channel)
            assert shown(channel)[0] == "new"
    finally:
        server.stop()


@contextmanager
def served(loaded: LoadedBundle, bundle_folder: Path, folder: Path) -> Iterator[tuple[Catalogue, Any]]:
    """A catalogue and a stub of its service over a real channel."""
    with closing(Catalogue(loaded, bundle_folder, folder)) as catalogue:
        servicer = CatalogServicer(catalogue, loaded.settings.serve)
        with InProcessServer(sluice_pb2_grpc.RankingServicer(), also=[servicer.add_to]) as server, \
                grpc.insecure_channel(server.target) as channel:
            yield catalogue, sluice_pb2_grpc.CatalogStub(channel)
        servicer.close()


def test_of_an_upsert_each_part_holds_by_the_version_of_its_kind(
    loaded: LoadedBundle, bundle_folder: Path, tmp_path: Path
) -> None:
    with served(loaded, bundle_folder, tmp_path) as (_, catalog):
        stock = pb.ItemStock(change=change("new", 5), stock=7)
        catalog.SetStock(pb.SetStockRequest(items=[stock]), timeout=60)
        whole = pb.UpsertRequest(items=[pb.ItemUpsert(change=change("new", 4), bid=2.0, stock=3)])
        outcomes = [catalog.Upsert(whole, timeout=60).results[0].outcome for _ in range(2)]
    assert outcomes == [pb.ChangeResult.APPLIED, pb.ChangeResult.SUPERSEDED]
    with closing(ChangeStore(tmp_path)) as store:
        kept = {one.kind: (one.version, one.number) for one in store.numbers_of(["new"])}
    assert kept == {"stock": (5, 7.0), "bid": (4, 2.0)}


def test_the_status_waits_for_no_batch(loaded: LoadedBundle, bundle_folder: Path, tmp_path: Path) -> None:
    """Neither for one that is read, nor for one that is written."""
    may_go = threading.Event()
    with closing(Catalogue(loaded, bundle_folder, tmp_path)) as catalogue:
        servicer = CatalogServicer(catalogue, loaded.settings.serve)
        written = catalogue.writing.submit(may_go.wait, 60)
        with InProcessServer(sluice_pb2_grpc.RankingServicer(), also=[servicer.add_to]) as server, \
                grpc.insecure_channel(server.target) as channel:
            catalog = sluice_pb2_grpc.CatalogStub(channel)
            batch = catalog.Withdraw.future(pb.WithdrawRequest(items=[change("i05")] * 10), timeout=60)
            assert catalog.Status(pb.CatalogStatusRequest(), timeout=60).stored_sequence == 0
            assert not batch.done()
            may_go.set()
            assert batch.result().sequence == 1
            assert catalog.Status(pb.CatalogStatusRequest(), timeout=60).stored_sequence == 1
        assert written.result()
        servicer.close()


def test_the_log_tells_once_that_the_disk_refuses_changes_and_once_that_it_takes_them_again(
    loaded: LoadedBundle, bundle_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    request = pb.WithdrawRequest(items=[change("i05")])
    with served(loaded, bundle_folder, tmp_path) as (catalogue, catalog), caplog.at_level(logging.INFO):
        with monkeypatch.context() as patched:
            patched.setattr(catalogue, "record", full)
            for _ in range(3):
                with pytest.raises(grpc.RpcError, match="disk is full"):
                    catalog.Withdraw(request, timeout=60)
        for _ in range(2):
            catalog.Withdraw(request, timeout=60)
    told = [one.getMessage()[:32] for one in caplog.records if "stored" in one.getMessage()]
    assert told == ["changes of items cannot be stored"[:32], "changes of items are stored again"[:32]]


def test_nothing_is_acknowledged_once_the_store_was_removed(
    loaded: LoadedBundle, bundle_folder: Path, tmp_path: Path
) -> None:
    with served(loaded, bundle_folder, tmp_path) as (_, catalog):
        (tmp_path / FILE).unlink()
        with pytest.raises(grpc.RpcError, match="was removed or replaced") as refused:
            catalog.Withdraw(pb.WithdrawRequest(items=[change("i05")]), timeout=60)
    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE


def test_the_status_says_which_file_it_cannot_read_and_what_to_do(
    loaded: LoadedBundle, bundle_folder: Path, tmp_path: Path
) -> None:
    with served(loaded, bundle_folder, tmp_path) as (_, catalog):
        with closing(sqlite3.connect(tmp_path / FILE)) as other:
            other.execute("DROP TABLE changes")
        with pytest.raises(grpc.RpcError) as unread:
            catalog.Status(pb.CatalogStatusRequest(), timeout=60)
    assert unread.value.code() is grpc.StatusCode.UNAVAILABLE
    details = unread.value.details() or ""
    assert str(tmp_path / FILE) in details
    assert "start the server anew" in details


def test_the_status_tells_how_many_cannot_be_shown_and_why(
    loaded: LoadedBundle, bundle_folder: Path, tmp_path: Path
) -> None:
    """What a bundle of other columns took, and this one cannot read."""
    with closing(ChangeStore(tmp_path)) as store:
        store.record([Change(item=item, kind="item", version=1, event_time=10**15, arrived=10**15,
                             value=encoded({"price": price})) for item, price in (("odd", "cheap"), ("i05", 2.0))])
    with served(loaded, bundle_folder, tmp_path) as (catalogue, catalog):
        status = catalog.Status(pb.CatalogStatusRequest(), timeout=60)
    assert (status.unshown_items, status.changed_items, status.failure) == (1, 1, "")
    assert status.last_unshown.startswith("'odd': ")
    assert catalogue.state()[1] == 1
    with closing(ChangeStore(tmp_path)) as store:
        assert status.store_mark == store.mark


def test_the_command_says_what_became_of_every_item(loaded: LoadedBundle, bundle_folder: Path, tmp_path: Path) -> None:
    with closing(Catalogue(loaded, bundle_folder, tmp_path)) as catalogue:
        servicer = CatalogServicer(catalogue, loaded.settings.serve)
        with InProcessServer(sluice_pb2_grpc.RankingServicer(), also=[servicer.add_to]) as server:
            def said(*words: str) -> tuple[int, str]:
                found = CliRunner().invoke(app, ["catalogue", *words, "--target", server.target])
                return found.exit_code, found.stdout

            assert said("withdraw", "i05", "--item-version", "2") == (0, "i05  applied\n")
            assert said("withdraw", "i05", "--item-version", "2") == (0, "i05  superseded\n")
            code, told = said("withdraw", "i06", "i\0", "--item-version", "2")
            assert code == 1
            assert told.startswith("i06  applied\ni")
            assert "refused: change.item_id" in told
            assert "stored_sequence: 2" in said("status")[1].splitlines()
            assert json.loads(said("status", "--json")[1])["storedSequence"] == "2"
        servicer.close()


@pytest.mark.slow
def test_a_server_that_keeps_no_changes_says_so(bundle_folder: Path, tmp_path: Path) -> None:
    server = ServerProcess(bundle_folder, tmp_path / "server.log", options=("--workers", "1"))
    try:
        with grpc.insecure_channel(server.target) as channel, pytest.raises(grpc.RpcError) as refused:
            sluice_pb2_grpc.CatalogStub(channel).Withdraw(pb.WithdrawRequest(items=[change("i05")]), timeout=60)
        assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert "--fresh" in refused.value.details()
    finally:
        server.stop()
