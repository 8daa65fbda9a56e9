"""The page of an hour: every run in its table, and plots that need nothing from outside."""

from __future__ import annotations

from contracts.summaries.demo import FreshHourSummary, HourRun, HourSlice, Lift, Share
from sluice.report.fresh_hour import write_hour


def run(lost: float, clicks: float) -> HourRun:
    slices = tuple(HourSlice(minute=minute, clicks=clicks, value=None if minute == 20 else 0.5, lost=lost / 6)
                   for minute in range(0, 60, 10))
    return HourRun(
        clicks=Share(share=clicks, standard_error=0.0123), value=Share(share=0.5, standard_error=0.02),
        clicks_a_visit=1.5, best_clicks_a_visit=2.0, lost=lost, lost_share=lost / 100, mood=0.1, best_mood=0.4,
        unavailable=int(lost), repeated=3, places=800, clicked=90, changes=7, events=0, slowest_seconds=0.1,
        slices=slices)


def test_every_run_is_on_the_page_with_its_gains_and_three_plots(tmp_path):
    gain = {"items over nothing": Share(share=0.0456, standard_error=0.0031)}
    hour = FreshHourSummary(
        bundle="market-1", ranker="dcn_v2", seed=1, visits=1600, users=200, items=5000, mood=1.5,
        category_lift=Lift(logit=0.0123, standard_error=0.002),
        changes={"withdraw": 250, "upsert": 250}, runs={"nothing": run(12.5, 0.7), "items": run(0.0, 0.7456)},
        clicks_gained=gain, value_gained=gain, seconds=30.0)
    text = write_hour(tmp_path, hour).read_text(encoding="utf-8")
    assert text.count("<svg") == 3
    assert " src=" not in text
    for part in ("1,600 visits", "<td>items over nothing</td><td>0.0456</td><td>0.0031</td>",
                 "<th>nothing</th><th>items</th>", "oracle's clicks</td><td>0.7000</td><td>0.7456</td>",
                 "250 withdraw, 250 upsert", "lift its other items by 0.0123"):
        assert part in text
