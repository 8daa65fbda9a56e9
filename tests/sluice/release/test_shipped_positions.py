from __future__ import annotations

from contextlib import closing
from pathlib import Path

from sluice.release.shipped_positions import Position, ShippedPositions, Tried


def test_a_position_is_a_targets_own_and_outlives_the_process(tmp_path: Path) -> None:
    with closing(ShippedPositions(tmp_path)) as positions:
        assert positions.of("a:1") == Position(0, 0)
        positions.put("a:1", Position(7, 3))
        positions.put("a:1", Position(9, 4))
    with closing(ShippedPositions(tmp_path)) as positions:
        assert positions.of("a:1") == Position(9, 4)
        assert positions.of("b:1") == Position(0, 0)


def test_what_a_target_refused_is_kept_until_it_takes_it_or_loses_its_folder(tmp_path: Path) -> None:
    with closing(ShippedPositions(tmp_path)) as positions:
        positions.put("a:1", Position(7, 3), refused=[5, 6, 7])
        positions.put("a:1", Position(9, 3), sent=[5, 6], refused=[6])
        positions.put_tried("a:1", Tried("v2", 100))
    with closing(ShippedPositions(tmp_path)) as positions:
        assert (positions.refused("a:1"), positions.refused("b:1")) == ([6, 7], [])
        assert (positions.tried("a:1"), positions.tried("b:1")) == (Tried("v2", 100), Tried())
        assert positions.begin_again("a:1", "later") == positions.of("a:1") == Position()
        assert (positions.refused("a:1"), positions.tried("a:1")) == ([], Tried())
        assert (positions.mark("a:1"), positions.mark("b:1")) == ("later", "")
