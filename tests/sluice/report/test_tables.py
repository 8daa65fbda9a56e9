from __future__ import annotations

import io
from collections.abc import Callable

from rich.console import Console

from contracts.summaries.train import (
    AgeRecall,
    ChannelRecall,
    ChannelsSummary,
    SliceFigures,
    TrainSummary,
    TrialFigures,
    TuneSummary,
    WarmStartFigures,
)
from sluice.report.tables import (
    figure,
    novelty_slices,
    print_channels,
    print_cold_starts,
    print_crosses,
    print_deployed,
    print_federated,
    print_leaks,
    print_models,
    print_pairs,
    print_prerank,
    print_tuning,
)
from tests.sluice import run_records as records


def printed(show: Callable[[Console], None]) -> str:
    text = io.StringIO()
    show(Console(file=text, width=200))
    return text.getvalue()


def test_a_missing_figure_is_a_dash_not_a_number():
    assert [figure(None), figure(0.5), figure(3), figure("dnn")] == ["-", "0.5000", "3", "dnn"]
    assert [figure(-999.9), figure(1364729.733), figure(7000)] == ["-999.9", "1,364,730", "7000"]
    assert [figure(99.95), figure(276.25), figure(9.87654)] == ["99.95", "276.2", "9.8765"]


def test_models_have_the_columns_that_any_of_them_has():
    models = {"dnn": records.ranker(auc=0.75), "din": records.ranker(auc=0.5, gauc=None)}
    text = printed(lambda console: print_models(models, console))
    for part in ("dnn", "0.7500", "GAUC", "0.7000", "-"):
        assert part in text
    assert "share of oracle" not in text


def test_each_network_that_could_not_start_from_the_parents_says_why():
    warm = WarmStartFigures(parent="shop-1", rows=9, rows_carried=9, anew=())
    cold = warm.model_copy(update={"rows_carried": 0, "cold": "dnn starts cold: mlp.first.request is [8] there."})
    made = TrainSummary(ranker="dnn", models={
        "dnn": records.ranker(warm_start=cold), "din": records.ranker(warm_start=warm), "fives": records.ranker()})
    assert printed(lambda console: print_cold_starts(made, console)) == f"{cold.cold}\n"


def test_who_is_known_is_split_where_somebody_is_new_and_the_reason_stands_below():
    parts = {"known users": SliceFigures(rows=90, positives=9, auc=0.8125),
             "new users": SliceFigures(rows=10, positives=1)}
    models = {"dnn": records.ranker(by_novelty=parts)}
    text = printed(lambda console: print_models(models, console, "dnn is served: it is the best."))
    for part in ("new users, 10 rows", "0.8125", "dnn is served: it is the best."):
        assert part in text
    assert "GAUC by who is known" not in text
    by_user = {"known users": parts["known users"].model_copy(update={"gauc": 0.6875}), "new users": parts["new users"]}
    text = printed(lambda console: print_models({"dnn": records.ranker(by_novelty=by_user)}, console))
    assert "GAUC by who is known" in text
    assert "0.6875" in text
    nobody = {"known users": parts["known users"], "new users": SliceFigures(rows=0, positives=0)}
    assert novelty_slices({"dnn": records.ranker(by_novelty=nobody)}) == {}
    assert novelty_slices({"dnn": records.ranker()}) == {}


def test_nested_figures_are_rows_named_by_their_path():
    text = printed(lambda console: print_pairs("demo", {"slate": {"clicks": {"funnel": 0.875}}}, console))
    assert "slate.clicks.funnel" in text
    assert "0.8750" in text


def test_crosses_and_what_they_are_worth_are_printed():
    text = printed(lambda console: print_crosses(records.crosses(), console))
    for part in ("age_band x format", "173.2", "+0.0500 to +0.0700", "LightGBM", "0.6600"):
        assert part in text
    alone = records.crosses(variants=None, representations=None, lightgbm=None)
    assert "logistic regression" not in printed(lambda console: print_crosses(alone, console))


def test_the_frontier_names_its_choice_and_why_fields_went():
    text = printed(lambda console: print_prerank(records.prerank(), console))
    for part in ("chosen", "none", "dot_product", "0.9876", "junk: +0.0001 recall"):
        assert part in text


def test_a_setting_without_a_bound_is_not_one_that_spends_nothing():
    made = records.federated().federated
    text = printed(lambda console: print_federated(made.model_copy(update={"epsilon": {"cpp2": None}}), console))
    assert "unbounded" in text
    assert "221.5" in text
    central = next(line for line in text.splitlines() if "central" in line)
    assert "unbounded" not in central


def test_what_rounds_say_of_a_client_is_in_the_tables_and_what_is_too_much_in_words():
    made = records.federated().federated
    for text in (printed(lambda console: print_federated(made, console)),
                 printed(lambda console: print_deployed("cpp2", records.deployed(), console))):
        for shown in ("only holder seen", "0.0831", "epsilon of the noise", "7.25", "2.708",
                      "cpp2: a row's only holder is seen"):
            assert shown in text
    assert "0.3125" in printed(lambda console: print_federated(made, console))
    nothing = records.deployed(epsilon=None, single_holder_seen=None, warnings=())
    assert "unbounded" in printed(lambda console: print_deployed("cpp1", nothing, console))


def test_suspected_fields_are_warned_of_and_what_was_not_looked_at_is_said():
    quiet = records.leaks(suspected={})
    assert printed(lambda console: print_leaks(quiet, console)) == ""
    assert "field 'dwell' may leak the label: it is a copy" in printed(
        lambda console: print_leaks(records.leaks(), console))
    unsure = quiet.model_copy(update={"planted_found": False})
    assert "did not find the leak" in printed(lambda console: print_leaks(unsure, console))
    skipped = records.leaks(suspected={}, skipped="too few")
    assert "left out: too few" in printed(lambda console: print_leaks(skipped, console))


def test_settings_are_printed_by_what_mattered_beside_those_configured() -> None:
    settings = {"dropout": 0.2, "hidden": (64, 32), "learning_rate": 0.001}
    trial = TrialFigures(number=0, model="dnn", state="complete", score=0.7, epochs=2, configured=True,
                         settings=settings)
    best = trial.model_copy(update={"number": 1, "configured": False, "settings": {**settings, "dropout": 0.4}})
    found = TuneSummary(
        monitor="auc", best=best, configured=trial, gain=0.01, gain_standard_error=0.001, adopted=True, seconds=1.0,
        reason="They gain.", settings={"dropout": 0.4}, importances={"dropout": 0.75, "hidden": 0.25},
        trials=(trial, best), rows=10, written="tuned.toml")
    text = printed(lambda console: print_tuning(found, console))
    rows = [line.split("\u2502")[1:-1] for line in text.splitlines() if "\u2502" in line]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["dropout", "0.2", "0.4", "75%"], ["hidden", "[64, 32]", "[64, 32]", "25%"],
        ["learning_rate", "0.001", "0.001", "-"]]
    assert "dnn, 2 trials" in text
    assert text.rstrip().endswith("They gain.")


def test_every_channel_has_its_quota_and_its_recall():
    at = ChannelRecall(quotas={"sasrec": 30}, mixed=0.75, alone={"sasrec": 0.625, "popularity": None})
    made = ChannelsSummary(quotas={"sasrec": 60, "popularity": 40}, chosen_by="slates", validation_clicks=9,
                           test_clicks=8, recall={"100": at})
    text = " ".join(printed(lambda console: print_channels(made, console)).split())
    for part in ("recall at 100", "sasrec", "60", "0.6250", "mixed", "0.7500", "-", "what the ranker would show"):
        assert part in text
    assert "age" not in text


def test_recall_stands_by_age_of_the_item_where_ages_differ():
    ages = {"new": AgeRecall(clicks=3, mixed=0.5625, alone={"sasrec": 0.0}),
            "above": AgeRecall(clicks=5, mixed=0.875, alone={"sasrec": 0.8125})}
    at = ChannelRecall(quotas={"sasrec": 100}, mixed=0.75, alone={"sasrec": 0.5}, by_age=ages)
    made = ChannelsSummary(quotas={"sasrec": 100}, validation_clicks=9, test_clicks=8, recall={"100": at})
    text = printed(lambda console: print_channels(made, console))
    for part in ("recall at 100 by age of the item", "new", "0.5625", "0.0000", "above", "0.8750", "0.8125"):
        assert part in text
