"""The days of the Airflow demo are read back as they were."""

from __future__ import annotations

from pathlib import Path

from contracts.summaries import summary
from contracts.summaries.airflow_demo import AirflowDemoSummary, DemoDay, Judged

GAIN = Judged(figure="gate: GAUC gain", value=0.001, limit="low >= -0.03", distance=9.14)
DAY = DemoDay(day=4, log_until="2026-01-14", bundle="m-3", refused="quality: nulls", rolled_back="", requests=9,
              failed_requests=1, failures=("UNAVAILABLE: gone",), served_bundles=("m-2", "m-3"), visits=20,
              logged_rows=900, judged=(GAIN,), gain=0.001, gain_low=-0.002, share_of_oracle=0.8, seconds=50.0)


def test_days_are_read_back(tmp_path: Path) -> None:
    given = AirflowDemoSummary(days=(DAY,), events=15_000, rate=10.0, seconds=99.5)
    summary.write(tmp_path, given)
    assert summary.read(tmp_path, AirflowDemoSummary) == given


def test_a_day_says_what_happened() -> None:
    assert (DAY.mishap, DAY.happened) == ("refused: quality", "refused: quality: nulls; delivered again, then promoted")
    good = DAY.model_copy(update={"refused": ""})
    assert (good.mishap, good.happened) == ("", "promoted")
    back = good.model_copy(update={"rolled_back": "clicks"})
    assert (back.mishap, back.happened) == ("rolled back", "promoted, then rolled back: clicks")
    twice = DAY.model_copy(update={"refused": "quality: nulls; delivered again, promotion: GAUC"})
    assert twice.happened == "refused: quality: nulls; delivered again, promotion: GAUC"


def test_what_was_judged_is_a_sentence_with_its_distance() -> None:
    assert GAIN.sentence == "gate: GAUC gain 0.0010, low >= -0.03 is allowed: +9.1 standard errors from it"
    ratio = GAIN.model_copy(update={"of_limit": True, "distance": -0.5})
    assert ratio.sentence.endswith(": -0.5 times the limit from it")
