"""Each plot: an inline SVG for what is there, an empty string for what is not."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.summaries.days import PlatformDay
from contracts.summaries.demo import SlateEvaluation, SlateShares, StageLosses
from contracts.summaries.run import EvaluatedRanker, RunSummary
from contracts.summaries.train import ChannelRecall, ChannelsSummary, ChannelSummary
from sluice.report import plots
from tests.sluice import run_records as records
from tests.sluice.airflow_demo.planned_days import planned_days

SLATE = SlateEvaluation(
    clicks=SlateShares(random=0.2, popularity=0.4, funnel=0.8123),
    value=SlateShares(random=0.1, popularity=0.3, funnel=0.7876),
    loss=StageLosses(retrieve=0.05, prerank=0.03, rank=0.1, rerank=0.0),
)
CHANNELS = ChannelsSummary(
    quotas={"ease": 100}, validation_clicks=9, test_clicks=8, recall={
        "100": ChannelRecall(quotas={"ease": 100}, mixed=0.75, alone={"ease": 0.5, "popularity": None}),
        "20": ChannelRecall(quotas={"ease": 20}, mixed=0.25, alone={"ease": 0.125, "popularity": None})})
DAY = PlatformDay(day=8, share_of_oracle={"updates itself": 0.8}, standard_error={"updates itself": 0.01}, champion="a",
                  refused="", seconds=1.0)
MODELS = records.trained().models
SETTINGS = records.federated().settings
LEAKS = records.leaks()


def channel(slices: dict[str, dict[str, float]]) -> ChannelSummary:
    return ChannelSummary(seconds=1, rows_per_second=1, rounds=1, actions=9, users=3, items=4, validation_targets=2,
                          recall_at_10=0.5, recall_at_100=0.7, ndcg_at_10=0.4, recall_by=slices)


SLICED = {name: channel({"history": {"1-4": 0.2, "5-9": share}, "popularity": {"head": share}})
          for name, share in (("sasrec", 0.5), ("item_cosine", 0.3))}
DRAWN = {
    "models": plots.model_bars(MODELS),
    "reliability": plots.reliability(records.curves().reliability),
    "training": plots.training_curves(MODELS),
    "federated": plots.federated_curves(SETTINGS),
    "days": plots.day_lines([DAY, DAY.model_copy(update={"day": 9})]),
    "days under Airflow": plots.demo_days(planned_days()),
    "channels": plots.channel_bars(CHANNELS),
    "slices": plots.channel_slices(SLICED),
    "slates": plots.slate_bars(SLATE),
    "losses": plots.stage_losses(SLATE.loss),
    "fields": plots.field_bars(LEAKS.fields, LEAKS.suspected),
    "profile": plots.value_rates(LEAKS.suspected["dwell"].profile),
    "frontier": plots.prerank_frontier(records.prerank()),
    "heat maps": plots.heat_maps({"layer 1": np.eye(2)}, ["age", "format"]),
    "seconds": plots.job_seconds(RunSummary(name="x", features=records.features(), train=records.trained())),
}


@pytest.mark.parametrize("name", DRAWN)
def test_what_is_there_is_drawn_and_fetches_nothing(name: str) -> None:
    assert DRAWN[name].startswith("<svg")
    assert DRAWN[name].count("<svg") == 1


def test_a_model_of_one_epoch_takes_no_room_from_curves() -> None:
    first = next(figures.history[0] for figures in MODELS.values() if figures.history)
    one, two = ({"history": (first,) * epochs} for epochs in (1, 2))
    model = next(iter(MODELS.values()))
    alone = plots.training_curves({"alone": model.model_copy(update=one)})
    both = plots.training_curves({"alone": model.model_copy(update=one), "curve": model.model_copy(update=two)})
    assert "<!-- alone -->" in alone
    assert "<!-- alone -->" not in both
    assert "<!-- curve -->" in both


def test_what_is_not_there_is_not_drawn() -> None:
    nothing = [
        plots.model_bars({}), plots.reliability(None), plots.training_curves({}), plots.federated_curves({}),
        plots.demo_days(()), plots.day_lines(()), plots.channel_bars(None), plots.slate_bars(None),
        plots.channel_slices({}), plots.channel_slices({"ease": channel({})}),
        plots.stage_losses(None),
        plots.field_bars({}, ()), plots.value_rates(()), plots.prerank_frontier(None), plots.heat_maps({}, []),
        plots.job_seconds(RunSummary(name="x")),
    ]
    assert nothing == [""] * len(nothing)


def test_a_model_without_epochs_and_a_round_without_evaluation_have_no_curve() -> None:
    assert plots.training_curves({"popularity": records.ranker(history=())}) == ""
    assert plots.federated_curves({"cpp2": records.setting({1: None, 2: None})}) == ""


def test_the_oracle_is_a_line_only_where_it_is_known() -> None:
    known = EvaluatedRanker(**records.ranker().model_dump(), oracle_auc=0.75, share_of_oracle=0.93)
    assert "oracle" in plots.model_bars({"dnn": known})
    assert "oracle" not in DRAWN["models"]


def test_only_the_fields_that_say_most_are_shown_and_the_suspected_come_first() -> None:
    field = LEAKS.fields["age"]
    fields = {f"f{n:02d}": field.model_copy(update={"auc": 0.5 + n / 100}) for n in range(20)} | {"late": field}
    first, three = (plots.field_bars(fields, {"late"}, most=most) for most in (1, 3))
    assert plots.ALARM in first
    assert plots.ACCENT not in first
    assert three.count(plots.ALARM) == first.count(plots.ALARM)
    assert three.count(plots.ACCENT) == 2
    assert 'fill="url(#' in first or "fill: url(#" in first  # hatched: not told by its colour alone


def test_slices_are_named_with_every_model_that_has_them() -> None:
    text = plots.channel_slices({**SLICED, "als": channel({})})
    for named in ("sasrec", "item cosine", "actions known when asked", "third of the training actions", "5-9"):
        assert f"<!-- {named}" in text or f"{named} -->" in text
    assert "<!-- als -->" not in text
