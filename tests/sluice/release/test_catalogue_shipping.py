"""Between folders of real catalogues, over a real channel."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from benchmarks.serving.funnel import world
from benchmarks.serving.synthetic_bundle import publish
from contracts.errors import DataError
from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue.catalog_servicer import CatalogServicer
from serving.catalogue.catalogue import Catalogue
from serving.catalogue.change import Change
from serving.catalogue.change_store import ChangeStore
from serving.proto import sluice_pb2 as pb
from serving.proto import sluice_pb2_grpc
from serving.server.catalog_client import CatalogClient, ItemChange
from serving.server.connection import RankingFailed
from sluice.cli import app
from sluice.release import catalogue_shipping
from sluice.release.catalogue_shipping import ship
from tests.serving.in_process_server import InProcessServer

NOBODY = "127.0.0.1:1"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return publish(world(300, "dnn"), tmp_path_factory.mktemp("bundle"), 20)


@contextmanager
def host(bundle: Path, folder: Path, **limits: int) -> Iterator[str]:
    """Its address."""
    loaded = LoadedBundle.load(bundle)
    with closing(Catalogue(loaded, bundle, folder)) as catalogue:
        servicer = CatalogServicer(catalogue, loaded.settings.serve.model_copy(update=limits))
        with InProcessServer(sluice_pb2_grpc.RankingServicer(), also=[servicer.add_to]) as server:
            yield server.target
        servicer.close()


def change(item: str, version: int, **more: float | dict[str, str]) -> ItemChange:
    return ItemChange(item=item, version=version, **more)  # type: ignore[arg-type]


def stored(folder: Path) -> dict[tuple[str, str], tuple[int, int, str]]:
    with closing(ChangeStore(folder)) as store:
        return {(one.item, one.kind): (one.version, one.event_time, one.value) for _, one in store.after(0, 10_000)}


def tell(target: str) -> None:
    with CatalogClient(target) as client:
        client.withdraw([change("i1", 5), change("i2", 5)])
        client.upsert([change("new", 1, values={"item0": "v3"}, bid=2.0, stock=4)])
        client.set_bids([change(f"i{n}", 1, bid=n / 7) for n in range(10, 30)])


def test_the_other_host_has_the_same_changes_and_nothing_is_sent_twice(bundle: Path, tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    with host(bundle, a) as ours, host(bundle, b) as theirs, CatalogClient(theirs) as client:
        tell(ours)
        client.withdraw([change("i2", 6)])  # knows better
        assert ship(a, theirs, client) == {"applied": 24, "superseded": 1}
        assert ship(a, theirs, client) == {}
        with CatalogClient(ours) as back:
            assert ship(b, ours, back) == {"applied": 1, "superseded": 24}
    assert stored(a) == stored(b)
    assert len(stored(a)) == 25


def test_a_host_that_lost_its_folder_is_sent_all_again(bundle: Path, tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    with host(bundle, a) as ours:
        tell(ours)
    with host(bundle, b) as theirs, CatalogClient(theirs) as client:
        ship(a, "b:50051", client)
    shutil.rmtree(b)
    with host(bundle, b) as theirs, CatalogClient(theirs) as client:
        assert ship(a, "b:50051", client) == {"applied": 25}
    assert stored(a) == stored(b)


def test_a_host_that_lost_its_folder_is_sent_all_again_by_every_sender(bundle: Path, tmp_path: Path) -> None:
    """Also by one that looks when another has brought it as far as it was, or further."""
    a, b, c = (tmp_path / name for name in "abc")
    for sender, items in ((a, ("i1", "i2", "i3")), (b, ("i4", "i5"))):
        with closing(ChangeStore(sender)) as store:
            store.record([Change(item=item, kind="bid", version=1, event_time=1, arrived=1, value="2.0")
                          for item in items])
    for _ in range(2):
        with host(bundle, c) as theirs, CatalogClient(theirs) as client:
            assert [ship(sender, "c:1", client) for sender in (b, a, b)] == [{"applied": 2}, {"applied": 3}, {}]
        shutil.rmtree(c)
    with host(bundle, c) as theirs, CatalogClient(theirs) as client:
        assert [ship(sender, "c:1", client) for sender in (a, b)] == [{"applied": 3}, {"applied": 2}]


def test_changes_of_more_than_a_call_go_in_several(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue_shipping, "AT_ONCE", 7)
    with closing(ChangeStore(tmp_path / "a")) as store:
        store.record([Change(item=f"i{n}", kind="bid", version=1, event_time=n, arrived=n, value="1.5")
                      for n in range(40)])
    with host(bundle, tmp_path / "b") as theirs, CatalogClient(theirs) as client:
        assert ship(tmp_path / "a", theirs, client) == {"applied": 40}
    assert stored(tmp_path / "a") == stored(tmp_path / "b")


def test_an_item_that_the_other_bundle_refuses_stops_no_other(bundle: Path, tmp_path: Path) -> None:
    with closing(ChangeStore(tmp_path / "a")) as store:
        store.record([Change(item="i1", kind="item", version=1, event_time=1, arrived=1, value='{"nowhere": 1}'),
                      Change(item="i2", kind="bid", version=1, event_time=1, arrived=1, value="2.0")])
    with host(bundle, tmp_path / "b") as theirs, CatalogClient(theirs) as client:
        assert ship(tmp_path / "a", theirs, client) == {"applied": 1, "refused": 1}
        assert ship(tmp_path / "a", theirs, client) == {}


def with_a_refused_item(folder: Path, bundle: Path, target_folder: Path) -> None:
    with closing(ChangeStore(folder)) as store:
        store.record([Change(item="i1", kind="item", version=1, event_time=1, arrived=1, value='{"nowhere": 1}')])
    with host(bundle, target_folder) as theirs, CatalogClient(theirs) as client:
        assert ship(folder, "b:1", client) == {"refused": 1}
        assert ship(folder, "b:1", client) == {}


def test_what_was_refused_is_sent_again_once_the_other_has_another_bundle(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    with_a_refused_item(a, bundle, b)
    with host(bundle, b) as theirs, CatalogClient(theirs) as client:
        asked, sent = client.status, list[str]()

        def status() -> pb.CatalogStatus:
            """Of a bundle that has the field."""
            found = asked()
            found.bundle_version = "another"
            return found

        def upsert(items: Sequence[ItemChange]) -> pb.ChangeResponse:
            sent.extend(one.item for one in items)
            return pb.ChangeResponse(results=[pb.ChangeResult(item_id="i1", outcome=pb.ChangeResult.APPLIED)])

        monkeypatch.setattr(client, "status", status)
        assert ship(a, "b:1", client) == {"still refused": 1}
        assert ship(a, "b:1", client) == {}
        monkeypatch.setattr(client, "status", asked)
        monkeypatch.setattr(client, "upsert", upsert)
        assert ship(a, "b:1", client) == {"applied": 1}
        assert ship(a, "b:1", client) == {}
        assert sent == ["i1"]


def test_what_was_refused_is_sent_again_after_a_while_unless_it_was_replaced(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    with_a_refused_item(a, bundle, b)
    monkeypatch.setattr(catalogue_shipping, "REFUSED_SECONDS", 0)
    with host(bundle, b) as theirs, CatalogClient(theirs) as client:
        assert ship(a, "b:1", client) == {"still refused": 1}
        with closing(ChangeStore(a)) as store:
            store.record([Change(item="i1", kind="item", version=2, event_time=2, arrived=2, value='{"item0": "v3"}')])
        assert ship(a, "b:1", client) == {"applied": 1}
        assert ship(a, "b:1", client) == {}
    assert stored(a) == stored(b)


def test_what_is_new_waits_for_nothing_that_was_refused(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor for what the target does not even answer."""
    def upsert(_: Sequence[ItemChange]) -> pb.ChangeResponse:
        raise RankingFailed("RESOURCE_EXHAUSTED", "later", {})

    a, b = tmp_path / "a", tmp_path / "b"
    with_a_refused_item(a, bundle, b)
    with closing(ChangeStore(a)) as store:
        store.record([Change(item="i2", kind="bid", version=1, event_time=1, arrived=1, value="2.0")])
    with host(bundle, b) as theirs, CatalogClient(theirs) as client:
        monkeypatch.setattr(catalogue_shipping, "REFUSED_SECONDS", 0)
        monkeypatch.setattr(client, "upsert", upsert)
        with pytest.raises(RankingFailed, match="later"):
            ship(a, "b:1", client)
    assert list(stored(b)) == [("i2", "bid")]


def test_what_is_refused_anew_puts_off_nothing_that_was_refused_before(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, now = tmp_path / "a", [1000.0]
    monkeypatch.setattr(catalogue_shipping, "time", SimpleNamespace(time=lambda: now[0]))
    with host(bundle, tmp_path / "b") as theirs, CatalogClient(theirs) as client:
        for item, seconds, said in (("i1", 0, {"refused": 1}), ("i2", 40, {"refused": 1}),
                                    ("i3", 61, {"refused": 1, "still refused": 2})):
            now[0] = 1000.0 + seconds
            with closing(ChangeStore(a)) as store:
                store.record([Change(item=item, kind="item", version=1, event_time=1, arrived=1,
                                     value='{"nowhere": 1}')])
            assert ship(a, "b:1", client) == said
            assert ship(a, "b:1", client) == {}


@pytest.mark.parametrize("limit", [{"max_request_kb": 1}, {"max_candidates": 20}])
def test_a_batch_that_is_larger_than_the_other_reads_goes_in_parts(
    bundle: Path, tmp_path: Path, limit: dict[str, int]
) -> None:
    with closing(ChangeStore(tmp_path / "a")) as store:
        store.record([Change(item=f"{n:0100}", kind="bid", version=1, event_time=n, arrived=n, value="1.5")
                      for n in range(100)])
    with host(bundle, tmp_path / "b", **limit) as theirs, CatalogClient(theirs) as client:
        assert ship(tmp_path / "a", theirs, client) == {"applied": 100}
    assert stored(tmp_path / "a") == stored(tmp_path / "b")


def test_a_change_that_alone_is_larger_than_the_other_reads_stops_no_other(bundle: Path, tmp_path: Path) -> None:
    with closing(ChangeStore(tmp_path / "a")) as store:
        store.record([Change(item="i1", kind="bid", version=1, event_time=1, arrived=1, value="1.5"),
                      Change(item="x" * 2000, kind="bid", version=1, event_time=1, arrived=1, value="1.5")])
    with host(bundle, tmp_path / "b", max_request_kb=1) as theirs, CatalogClient(theirs) as client:
        assert ship(tmp_path / "a", theirs, client) == {"applied": 1, "refused": 1}


def test_a_target_that_is_away_is_an_error_and_when_followed_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(ChangeStore(tmp_path)), CatalogClient(NOBODY) as client:
        with pytest.raises(RankingFailed, match="UNAVAILABLE"):
            ship(tmp_path, NOBODY, client)
        waits, away = list[float](), list[RankingFailed]()

        def wait(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 3:
                raise KeyboardInterrupt

        monkeypatch.setattr(catalogue_shipping.time, "sleep", wait)
        with pytest.raises(KeyboardInterrupt):
            catalogue_shipping.follow(tmp_path, NOBODY, client, lambda _: None, away.append)
        assert (len(waits), len(away)) == (3, 1)


def test_a_folder_without_changes_is_named(tmp_path: Path) -> None:
    with CatalogClient(NOBODY) as client, pytest.raises(DataError, match=r"name the folder of a server's --fresh"):
        ship(tmp_path / "nowhere", NOBODY, client)


def test_the_command_says_what_came_of_it(bundle: Path, tmp_path: Path) -> None:
    with host(bundle, tmp_path / "a") as ours, host(bundle, tmp_path / "b") as theirs:
        tell(ours)
        told = [CliRunner().invoke(app, ["ship-catalogue", str(tmp_path / "a"), "--target", theirs])
                for _ in range(2)]
    assert [one.output for one in told] == ["25 applied\n", "nothing to send\n"]
    assert CliRunner().invoke(app, ["ship-catalogue", str(tmp_path / "a"), "--target", NOBODY]).exit_code == 1
