"""What the server knew when it was asked is what `sluice features` computes for that moment from the landed log: every
impression of a random log is a question to both, asked of the server before the impression is recorded: of the user
and of the item as a request reads them. The server's counters of items begin anew now and then, from what they kept.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from contracts.artifacts import Artifacts
from contracts.atomic_write import write_json
from contracts.config.config import Config
from pipelines.features.raw_features import build_features
from pipelines.ingest.ingest import ingest
from pipelines.windows.publish_clock import to_micros
from serving.bundle.loaded_bundle import LoadedBundle
from serving.events.landing import land
from tests.serving.random_host import (
    CLICKS_OF_ONE_TIME,
    CONFIG,
    ITEMS,
    KINDS,
    OF_ITEM,
    PRIOR,
    Asked,
    Host,
    lived,
)


def offline(spark: Any, host: Host, folder: Path) -> dict[Asked, dict[str, Any]]:
    """The features of its impression, from the landed log."""
    land(host.store, host.features, folder / "log", rows=100)
    (folder / "log" / "items").mkdir()
    pq.write_table(pa.table({"iid": ITEMS, "kind": KINDS}), folder / "log" / "items" / "part.parquet")
    out = Artifacts(folder / "out")
    ingested = ingest(spark, host.config, folder / "log", out)
    assert ingested.quarantined == 0
    assert ingested.clicks is not None
    assert ingested.clicks.quarantined == 0
    write_json(out.prior, {"prior_rate": PRIOR})
    build_features(spark, host.config, out, list(ingested.days))
    table = ds.dataset(out.features, format="parquet", partitioning="hive", exclude_invalid_files=True).to_table()
    return {(row["_request"], to_micros(row["_time"])): row for row in table.to_pylist()}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("config", [CONFIG, CLICKS_OF_ONE_TIME], ids=["two times", "clicks of one time"])
def test_the_server_knew_what_the_features_say(
    spark: Any, loaded: LoadedBundle, tmp_path: Path, seed: int, config: Config
) -> None:
    host = Host(tmp_path / "host", seed, loaded, config, anew=0.1)
    with closing(host):
        lived(host, 250)
        found = offline(spark, host, tmp_path)
    assert len(host.said) == 250
    for asked, said in host.said.items():
        told = {name: found[asked][name] for name in said}
        assert {name: float(np.float32(value)) if name in OF_ITEM else value for name, value in told.items()} == said
    assert host.served > 250  # of the windows of seconds most are whole
    assert host.served_of_items > 2000
    assert host.resumed > 5
    assert len({len(said["recent"]) for said in host.said.values()}) > 2
