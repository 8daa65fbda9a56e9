from __future__ import annotations

import io

from rich.console import Console

from sluice.tables import figure, print_models, print_pairs


def test_a_missing_figure_is_a_dash_not_a_number():
    assert [figure(None), figure(0.5), figure(3), figure("dnn")] == ["-", "0.5000", "3", "dnn"]


def test_models_and_nested_figures_are_printed():
    console = Console(file=io.StringIO(), width=120)
    print_models({"dnn": {"auc": 0.75}, "din": {"auc": 0.5, "gauc": 0.25}}, console)
    print_pairs("demo", {"slate": {"clicks": {"funnel": 0.875}}}, console)
    text = console.file.getvalue()
    for part in ("dnn", "0.7500", "0.2500", "-", "slate.clicks.funnel", "0.8750"):
        assert part in text
