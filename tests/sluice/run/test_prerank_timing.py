from __future__ import annotations

from pathlib import Path

from serving.bundle.loaded_bundle import LoadedBundle
from sluice.run.prerank_timing import REPETITIONS, queries
from tests.sluice.market_run import market_run


def test_each_of_the_first_users_asks_once_in_the_servers_default_length(tmp_path: Path) -> None:
    loaded = LoadedBundle.load(market_run(tmp_path / "out").bundle)
    asked = queries(loaded)
    assert len({query.user for query in asked}) == len(asked) == min(len(loaded.users), REPETITIONS)
    assert {query.limit for query in asked} == {loaded.settings.serve.default_limit}
