"""Money: what a server's answers said, beside what the bill makes of its response log."""

from __future__ import annotations

import math
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from contracts.config.config import Config
from contracts.config.stages import Serve
from serving.bundle.loaded_bundle import LoadedBundle
from serving.response_log.response_log import ResponseLog
from serving.server.client import RankingClient
from serving.server.servicer import RankingServicer
from serving.stages.funnel import Funnel
from sluice.release.bill import Billed, bill
from tests.serving.in_process_server import InProcessServer

CONFIG = Config.model_validate({
    "name": "market",
    "log": {"path": "{data}/answers", "user_id": "user", "item_id": "item", "request_id": "request_id",
            "event_time": "time"},
    "label": {"clicks": {"path": "{data}/clicks", "on": ["request_id", "item"], "event_time": "clicked"}},
    "items": {"path": "{data}/items", "key": "item_id"},
    "fields": [{"name": "item", "kind": "categorical", "side": "item"}],
})


def test_the_bill_of_a_servers_log_is_what_its_answers_said(
    loaded: LoadedBundle, tmp_path: Path
) -> None:
    payers = {loaded.items.key(row): f"payer {row % 7}" for row in range(len(loaded.items))}
    (tmp_path / "items").mkdir()
    pq.write_table(pa.table({"item_id": list(payers), "advertiser": list(payers.values())}),
                   tmp_path / "items" / "part.parquet")
    log, began = ResponseLog(tmp_path / "answers"), datetime.now(UTC)
    made = RankingServicer(Funnel(loaded), loaded.manifest, Serve(deadline_ms=5000), log)
    clicks, said = [], defaultdict[str, list[float]](list)
    with InProcessServer(made) as server, RankingClient(server.target) as client:
        for number in range(40):
            answer = client.rank(f"u{number:02d}", request_id=f"r{number}", limit=6, seconds=20)
            for item in answer.items[number % 3 :: 3]:
                clicks.append((f"r{number}", item.item_id, datetime.now(UTC) + timedelta(seconds=1)))
                said[payers[item.item_id]].append(item.price)
    made.close()
    log.close()
    columns = dict(zip(("request_id", "item", "clicked"), map(list, zip(*clicks, strict=True)), strict=True))
    (tmp_path / "clicks").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "clicks" / "part.parquet")
    billed = Billed(tmp_path / "answers", began, datetime.now(UTC) + timedelta(seconds=9), "advertiser", data=tmp_path)
    found = bill(CONFIG, billed)
    assert {line.payer: line.amount for line in found.lines if line.clicks} == {
        payer: math.fsum(prices) for payer, prices in said.items()}
    assert (found.clicks, found.lost_calls, found.unpriced) == (len(clicks), 0, 0)
