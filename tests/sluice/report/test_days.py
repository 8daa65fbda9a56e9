"""The page of days under Airflow: every day in its table, what happened in the words of who refused, one plot."""

from __future__ import annotations

from contracts.summaries.airflow_demo import AirflowDemoSummary, Judged
from sluice.report.days import write_days
from tests.sluice.airflow_demo.planned_days import planned_days


def test_every_day_is_in_the_table_and_the_plot_is_there(tmp_path):
    days = planned_days()
    gain = Judged(figure="gate: GAUC gain", value=-0.00312, limit="low >= -0.03", distance=9.1)
    days[1] = days[1].model_copy(update={"gain": -0.00312, "gain_low": -0.00587, "predicted_over_observed": 1.25,
                                         "judged": (gain,)})
    page = write_days(tmp_path, AirflowDemoSummary(days=tuple(days), events=30_000, rate=5.0, seconds=700.0,
                                              start_seconds=41.0, first_champion_seconds=150.0))
    text = page.read_text(encoding="utf-8")
    for day in days:
        assert f"<td>{day.day}</td><td>{day.happened}</td><td>{day.bundle}</td>" in text
    assert "<td>-0.0031</td><td>-0.0059</td><td>1.2500</td>" in text
    assert "<td>2</td><td>gate: GAUC gain</td><td>-0.0031</td><td>low &gt;= -0.03</td><td>9.1000</td>" in text
    assert "30,000 impressions" in text
    assert "700.0 s in all, 41.00 of them until Airflow was up and 150.0 from there" in text
    assert text.count("<svg") == 1
    assert " src=" not in text
