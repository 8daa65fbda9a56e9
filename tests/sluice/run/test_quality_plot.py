"""The picture of a refused day: one panel per refused column beneath the days' sizes, worst drift first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from contracts.features.drift import ColumnProfile
from pipelines.quality.day_profile import DayProfile
from sluice.run.quality_plot import MOST_PANELS, draw


def day(number: int, columns: int = 1, nulls: float = 0.0) -> DayProfile:
    keys = ColumnProfile(null_rate=nulls, keys={"rome": 30 + number, "oslo": 20}, other=5)
    price = ColumnProfile(null_rate=0.0, quantiles=tuple(float(value + number) for value in np.linspace(0, 1, 5)))
    named = {f"city_{place}": keys for place in range(columns)}
    return DayProfile(day=f"2026-01-{number:02d}", rows=100, label_rate=0.2, columns={"price": price, **named})


def height(path: Path) -> int:
    return imread(path).shape[0]


@pytest.mark.slow
@pytest.mark.parametrize("column", ["price", "city_0"])
def test_numbers_and_keys_are_drawn_beside_days_before_and_without_any(column: str, tmp_path: Path) -> None:
    for name, history in (("with", [day(1), day(2)]), ("without", [])):
        path = draw(tmp_path / f"{name}.png", day(3, nulls=0.4), history, [], [column])
        assert path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_there_is_a_panel_per_column_up_to_the_limit(tmp_path: Path) -> None:
    today, many = day(3, columns=9), [f"city_{place}" for place in range(9)]
    counts, path = (1, 2, MOST_PANELS, 9), tmp_path / "day.png"
    heights = [height(draw(path, today, [day(1)], [], many[:count])) for count in counts]
    assert heights[0] < heights[1] < heights[2] == heights[3]
