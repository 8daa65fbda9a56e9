from __future__ import annotations

from pathlib import Path

from benchmarks.freshness.fresh_build import BUILDS, LOOKS, RecallBeside, recalls_beside
from benchmarks.serving.funnel import VALUES, world
from benchmarks.serving.synthetic_bundle import publish
from serving.catalogue.change import WITHDRAWN, Change, encoded
from serving.catalogue.change_store import ChangeStore


def test_a_small_world_is_searched_exactly_at_every_look(tmp_path: Path) -> None:
    bundle = publish(world(500, "dnn"), tmp_path / "world", VALUES)
    store = ChangeStore(tmp_path)
    store.record([Change(item=f"i{number}", kind="item", version=1, event_time=1, arrived=1, value=encoded(WITHDRAWN))
                  for number in range(7)])
    store.close()
    found = recalls_beside(bundle, tmp_path)
    assert [one.changes for one in found] == [3, 5, 7]
    assert all((one.changed, one.anew, one.ratio) == (1.0, (1.0,) * BUILDS, 1.0) for one in found)
    assert len(found) == LOOKS
    assert RecallBeside(1, 0.5, (0.9, 1.1)).ratio == 0.5
