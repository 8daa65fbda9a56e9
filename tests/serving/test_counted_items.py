"""Counters of items over the wire: what is recorded of an item, by a call or by the stream, is what every worker ranks
it by a moment later, and after all of them were killed."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.freshness.redis_process import RedisProcess
from contracts.features.encoding import Encoded
from serving.bundle.loaded_bundle import LoadedBundle
from serving.events.event_servicer import now_micros
from serving.events.event_store import EventStore
from serving.events.event_stream import STREAM
from serving.request.query import ContextValue, RankQuery
from serving.request.request_features import RequestFeatures, block
from serving.server.catalog_client import CatalogClient
from serving.server.client import RankingClient
from serving.server.events_client import EventsClient, ItemEvent
from sluice.demo.server_process import ServerProcess
from tests.serving.counted_items import COUNTER, WINDOW, countable, counted_features
from tests.serving.recorded_events import SECOND
from tests.serving.running_redis import needs_redis

ITEM, USER = "i03", "u01"
CONTEXT: dict[str, ContextValue] = {"device": "phone", "hour": 9.0}
PATIENCE = 60.0


def probability(bundle: LoadedBundle, views: int) -> float:
    """As the network was trained to read so many views."""
    features = RequestFeatures(bundle)
    user = features.requester(RankQuery(USER, 1, CONTEXT))
    found = features.candidate_inputs(np.array([bundle.items.row(ITEM)]), user.inputs.ids)
    fresh = bundle.encoder.encode({COUNTER: [float(views)]}, "item")
    (column,) = (slot.start for slot in bundle.spec.id_slots("item") if slot.field == COUNTER)
    found.ids[0, column] = fresh.ids[0, column]
    with torch.inference_mode():
        logit = bundle.ranker(block(user.inputs), block(Encoded(found.ids, fresh.dense))).numpy()
    return float(bundle.calibration.apply(logit)[0])


def shown(number: int) -> ItemEvent:
    return ItemEvent(id=f"shown {number}", kind="impression", user="other", item=ITEM, request=f"r{number}", position=1,
                     bid=0.5)


def until_all_say(server: ServerProcess, wanted: float) -> None:
    """So many calls of connections of their own that no worker is left out."""
    end, agreeing = time.monotonic() + PATIENCE, 0
    while agreeing < 8:
        assert time.monotonic() < end
        with RankingClient(server.target) as client:
            (said,) = client.score(USER, [ITEM], context=CONTEXT, seconds=5.0).probabilities
        agreeing = agreeing + 1 if said == pytest.approx(wanted, abs=1e-5) else 0


@needs_redis
@pytest.mark.slow
def test_what_is_recorded_of_an_item_is_what_it_is_ranked_by(bundle_folder: Path, tmp_path: Path) -> None:
    bundle, fresh = countable(bundle_folder, tmp_path), tmp_path / "fresh"
    EventStore(fresh, counted_features(), lambda: now_micros() - 2 * WINDOW * SECOND).close()  # its window is whole
    loaded = LoadedBundle.load(bundle)
    said = {views: probability(loaded, views) for views in (0, 3, 6)}
    assert len({round(one, 3) for one in said.values()}) == 3
    with RedisProcess(tmp_path) as store:
        options = ("--fresh", str(fresh), "--workers", "2", "--event-stream", store.address)
        server = ServerProcess(bundle, tmp_path / "server.log", options=options)
        try:
            until_all_say(server, said[0])
            with EventsClient(server.target) as client:
                assert client.record([shown(number) for number in (1, 2, 3, 3)]).recorded == 3
            until_all_say(server, said[3])
            with store.client() as client:
                for number in (3, 4, 5, 6):
                    client.xadd(STREAM, {"event": shown(number).message().SerializeToString()})
            until_all_say(server, said[6])
            server.process.kill()
            server.process.wait()
            server = ServerProcess(bundle, tmp_path / "server.log", options=options)
            until_all_say(server, said[6])
            with CatalogClient(server.target) as catalog:
                status = catalog.status()
            assert (status.counted_items, status.counters_failure) == (1, "")
            assert 0 <= status.counters_age_seconds < PATIENCE
        finally:
            server.stop()


@pytest.mark.slow
def test_a_stop_keeps_what_is_counted_for_the_next_start(bundle_folder: Path, tmp_path: Path) -> None:
    bundle, fresh = countable(bundle_folder, tmp_path), tmp_path / "fresh"
    EventStore(fresh, counted_features(), lambda: now_micros() - 2 * WINDOW * SECOND).close()
    wanted = probability(LoadedBundle.load(bundle), 3)
    server = ServerProcess(bundle, tmp_path / "server.log", options=("--fresh", str(fresh), "--workers", "2"))
    try:
        with EventsClient(server.target) as client:
            assert client.record([shown(number) for number in (1, 2, 3)]).recorded == 3
        until_all_say(server, wanted)
    finally:
        server.stop()
    (kept,) = (fresh / "counters").glob("[0-9]*.npz")
    assert int(kept.stem) == 3
    server = ServerProcess(bundle, tmp_path / "again.log", options=("--fresh", str(fresh), "--workers", "2"))
    server.stop()
    assert (tmp_path / "again.log").read_text().count(f"go on from {kept}") == 2
