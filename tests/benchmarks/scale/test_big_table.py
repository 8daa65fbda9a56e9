from __future__ import annotations

from pathlib import Path

from benchmarks.scale import big_table


def test_a_table_is_trained_kept_and_taken_up(tmp_path: Path) -> None:
    trained = big_table.train(tmp_path, 5000, 16, 64, 3)
    assert trained["memory_by_arithmetic"] == 5000 * 140
    assert trained["checkpoint_bytes"] > 5000 * (2 * 64 + 8 + 64)
    taken = big_table.take_up(tmp_path, 5000, 16, 64)
    assert taken["updates_before"] == 3
    assert taken["processes"] == 1
