from __future__ import annotations

import io

from rich.console import Console

from sluice.report.tables import figure, print_crosses, print_leaks, print_models, print_pairs


def test_a_missing_figure_is_a_dash_not_a_number():
    assert [figure(None), figure(0.5), figure(3), figure("dnn")] == ["-", "0.5000", "3", "dnn"]
    assert [figure(-999.9), figure(1364729.733), figure(7000)] == ["-999.9000", "1,364,730", "7000"]


def test_models_and_nested_figures_are_printed():
    shown = io.StringIO()
    console = Console(file=shown, width=120)
    print_models({"dnn": {"auc": 0.75}, "din": {"auc": 0.5, "gauc": 0.25}}, console)
    print_pairs("demo", {"slate": {"clicks": {"funnel": 0.875}}}, console)
    text = shown.getvalue()
    for part in ("dnn", "0.7500", "0.2500", "-", "slate.clicks.funnel", "0.8750"):
        assert part in text


def test_crosses_and_what_they_are_worth_are_printed():
    shown = io.StringIO()
    console = Console(file=shown, width=160)
    arms = {"none": {"auc": 0.6, "keys": 0},
            "fives": {"auc": 0.7, "gain": 0.1, "gain_low": 0.09, "gain_high": 0.11, "keys": 24}}
    cross = {"parts": ["age_band", "format"], "gain": 12.34, "importance": 0.9, "support": 24}
    print_crosses({"crosses": [cross], "variants": arms, "lightgbm": {"auc": 0.65}}, console)
    text = shown.getvalue()
    for part in ("age_band x format", "12.3", "+0.0900 to +0.1100", "LightGBM", "0.6500"):
        assert part in text


def test_suspected_fields_are_warned_of_and_what_was_not_looked_at_is_said():
    shown = io.StringIO()
    console = Console(file=shown, width=200)
    quiet = {"suspected": {}, "planted_found": True}
    print_leaks(quiet, console)
    assert shown.getvalue() == ""
    print_leaks({**quiet, "suspected": {"dwell": {"reasons": ["it is a copy"]}}}, console)
    print_leaks({**quiet, "planted_found": False}, console)
    print_leaks({"suspected": {}, "skipped": "too few"}, console)
    text = shown.getvalue()
    for part in ("field 'dwell' may leak the label: it is a copy", "did not find the leak", "left out: too few"):
        assert part in text
