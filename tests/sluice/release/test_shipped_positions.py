from __future__ import annotations

from contextlib import closing
from pathlib import Path

from sluice.release.shipped_positions import Position, ShippedPositions


def test_a_position_is_a_targets_own_and_outlives_the_process(tmp_path: Path) -> None:
    with closing(ShippedPositions(tmp_path)) as positions:
        assert positions.of("a:1") == Position(0, 0)
        positions.put("a:1", Position(7, 3))
        positions.put("a:1", Position(9, 4))
    with closing(ShippedPositions(tmp_path)) as positions:
        assert positions.of("a:1") == Position(9, 4)
        assert positions.of("b:1") == Position(0, 0)
