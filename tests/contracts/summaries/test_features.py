from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import DataError
from contracts.summaries import summary
from contracts.summaries.features import DayEvents, ExampleRows, FeatureRows, FeaturesSummary, Ingested, WindowRows

DAY = "2026-01-05"
INGESTED = Ingested(rows_in=5, duplicates=1, quarantined=1, reasons={"t is null": 1}, events=3, positives=1,
                    days={DAY: DayEvents(events=3, positives=1)}, written=(DAY,))
WHOLE = FeaturesSummary(
    name="shop", ingest=INGESTED, windows={"train": ("2026-01-05T00:00:00+00:00", "2026-01-06T00:00:00+00:00")},
    features=FeatureRows(rows=3, rows_of_day={DAY: 3}, prior_rate=0.0, written=(DAY,)),
    check={"train": WindowRows(rows=3, positives=1, users=2)}, vocabularies={"city": 4},
    examples={"train": ExampleRows(rows=3, positives=1, days=1, content_hash="h", written=(DAY,))}, crosses=(),
    parity_rows=0, seconds={"ingest": 1.5},
)


@pytest.mark.parametrize("changes", [
    {}, {"day": DAY, "windows": None, "check": None}, {"windows": {"train": 2, "validation": 1}},
], ids=["whole", "day", "without times"])
def test_a_summary_is_read_back(tmp_path: Path, changes: dict[str, object]) -> None:
    given = WHOLE.model_copy(update=changes)
    summary.write(tmp_path, given)
    assert summary.read(tmp_path, FeaturesSummary) == given


def test_what_the_log_lacks_is_not_written() -> None:
    assert {"day", "until", "online"}.isdisjoint(WHOLE.plain())
    assert {"users", "items", "clicks", "undated"}.isdisjoint(INGESTED.plain())


def test_another_jobs_summary_is_refused(tmp_path: Path) -> None:
    (tmp_path / summary.FILE).write_text('{"ranker": "dnn"}')
    with pytest.raises(DataError, match="no FeaturesSummary"):
        summary.read(tmp_path, FeaturesSummary)
