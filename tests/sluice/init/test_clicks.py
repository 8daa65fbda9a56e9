from __future__ import annotations

from pathlib import Path

import pytest

from sluice.init.clicks import Clicks
from sluice.init.column_types import typed_columns
from sluice.table_samples.table_sample import read_sample


@pytest.mark.parametrize(("delay", "soon"), [(60, True), (7200, False)])
def test_clicks_name_their_impressions_and_tell_how_soon_they_came(delay: int, soon: bool, tmp_path: Path) -> None:
    start = 1_767_600_000
    (tmp_path / "log.csv").write_text("id,time\n" + "".join(f"i{row},{start + row}\n" for row in range(9)))
    (tmp_path / "clicks.csv").write_text(
        "id,time\n" + "".join(f"i{row},{start + row + delay}\n" for row in range(0, 9, 2)))
    log, sample = typed_columns(read_sample(tmp_path / "log.csv")), read_sample(tmp_path / "clicks.csv")
    columns = typed_columns(sample)
    clicks = Clicks(sample, columns, ("id",), columns[1])
    assert clicks.truth(log) == tuple(row % 2 == 0 for row in range(9))
    assert clicks.within_an_hour(log, log[1]) is soon
