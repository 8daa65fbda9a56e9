from __future__ import annotations

from pathlib import Path

from benchmarks.freshness.fresh_build import fresh_build_recall
from benchmarks.serving.funnel import VALUES, world
from benchmarks.serving.synthetic_bundle import publish
from serving.catalogue.change import WITHDRAWN, Change, encoded
from serving.catalogue.change_store import ChangeStore


def test_a_small_world_is_searched_exactly_without_the_items_that_are_gone(tmp_path: Path) -> None:
    bundle = publish(world(500, "dnn"), tmp_path / "world", VALUES)
    store = ChangeStore(tmp_path)
    store.record([Change(item="i7", kind="item", version=1, event_time=1, arrived=1,
                         value=encoded(WITHDRAWN))])
    store.close()
    assert fresh_build_recall(bundle, tmp_path) == 1.0
