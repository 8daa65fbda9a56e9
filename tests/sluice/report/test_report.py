"""The report as a reader gets it: one page, nothing fetched, rendered by a real browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any

import pytest

from contracts import summary
from contracts.errors import DataError
from contracts.summaries import summary as typed_summary
from contracts.summaries.train import Curves, RankerSummary, ReliabilityCurve, RocCurve
from sluice.report.report import write_report

RUN = {
    "name": "marketplace",
    "marketplace_version": "1",
    "seconds": 200.5,
    "ranker": "dnn",
    "models": {
        "popularity": {"auc": 0.58, "gauc": 0.55, "oracle_auc": 0.75, "share_of_oracle": 0.32},
        "dnn": {
            "auc": 0.7321, "gauc": 0.7, "log_loss": 0.14, "oracle_auc": 0.75, "share_of_oracle": 0.9284,
            "history": [{"epoch": 1, "validation_loss": 0.15}, {"epoch": 2, "validation_loss": 0.14}],
        },
    },
    "slate": {
        "clicks": {"random": 0.2, "popularity": 0.4, "funnel": 0.8123},
        "value": {"random": 0.1, "popularity": 0.3, "funnel": 0.7876},
        "loss": {"retrieve": 0.05, "prerank": 0.03, "rank": 0.1, "rerank": 0.0},
    },
    "serving": {"requests": 800, "errors": 0, "p50_ms": 4.2, "p99_ms": 9.1},
    "parity": {"rows": 256, "mismatches": 0},
    "bundle": {"version": "marketplace-abc", "seconds": 3.0},
    "features": {"seconds": {"ingest": 20.0, "fit": 30.0},
                 "examples": {"train": {"rows": 200_000, "positives": 7_000}}},
    "crosses": {
        "crosses": [{"parts": ["age_band", "format"], "gain": 173.2, "importance": 0.93, "support": 24}],
        "columns": ["age_band", "format"], "proposed": 9, "planted": 6, "found": 5, "seconds": 40.0,
        "compare_rows": 1000, "lightgbm": {"auc": 0.66},
        "variants": {"none": {"auc": 0.67, "keys": 0},
                 "fives": {"auc": 0.7419, "gain": 0.06, "gain_low": 0.05, "gain_high": 0.07, "keys": 24}},
        "representations": {kind: {"auc": 0.7, "weights": 10} for kind in ("none", "embedding", "product")},
    },
    "train": {"seconds": 60.0, "outside": {"auc": 0.7123, "gauc": 0.69, "rows": 100_000},
              "freshness": {"published": {"auc": 0.73, "gauc": 0.7}, "fresh": {"auc": 0.74, "gauc": 0.71}},
              "co_occurrence": {"city_x_brand_rate": {
                  model: {"0": {"rows": 18_971, "auc": 0.6111 + shift}, "1-10": {"rows": 7, "auc": None}}
                  for model, shift in (("statistic", 0.0), ("dnn", 0.1))}}},
    "pretrain": {"model": "pcf_gnn", "graph": {"nodes": 700, "edges": 23_338},
                 "bytes": {"own": 47_652, "table": 280_056, "dense": 397_600}},
    "pair_rates": {"zero_bucket_mse": {"mean": 0.00127, "table": 0.00133, "factorisation": 0.0011, "pcf_gnn": 0.00081},
                   "auc": {"none": 0.7217, "table": 0.7219, "factorisation": 0.7216, "pcf_gnn": 0.7229}},
}  # fmt: skip

RANKER = RankerSummary(
    auc=0.7321, log_loss=0.14, ece=0.01, gauc=0.7, gauc_users=10, gauc_skipped=2, rows=100, positives=7,
    auc_standard_error=0.01, ece_uncalibrated=0.02, validation_auc=0.73, position_bias=(0.0,), seconds=60.0,
    rows_per_second=3000.0, epochs=2, best_epoch=2, history=(), curves=Curves(
        roc=RocCurve(false_positive_rate=(0.0, 1.0), true_positive_rate=(0.0, 1.0)),
        reliability=ReliabilityCurve(predicted=(0.01, 0.05), observed=(0.011, 0.048), rows=(50, 50))),
)


@pytest.fixture
def page(tmp_path):
    summary.write(tmp_path, RUN)
    typed_summary.write(tmp_path / "models" / "dnn", RANKER)
    return write_report(tmp_path)


def test_the_page_holds_every_figure_and_needs_nothing_else(page):
    text = page.read_text()
    figures = ("0.7321", "0.9284", "0.8123", "0.7876", "0.7123", "4.2 ms")
    for part in (*figures, "marketplace-abc", "Where the funnel loses value"):
        assert part in text
    fetched = re.findall(r"(?:src|href)=\"(?!#)([^\"]*)\"|url\((?!#)([^)]*)\)|@import", text)
    assert [match for match in fetched if any(match)] == []
    assert text.count("<svg") == 6


def test_the_page_shows_auc_by_bucket_memory_and_the_error_against_the_truth(page):
    text = page.read_text()
    for part in ("city_x_brand_rate", "18971", "0.6111", "0.7111", "47652", "280056", "397600", "8.1", "0.7229"):
        assert part in text


def test_a_run_without_a_marketplace_shows_what_it_has(tmp_path):
    own = {key: RUN[key] for key in ("name", "seconds", "ranker", "bundle")}
    models = {"dnn": {"auc": 0.7, "gauc": 0.6}}
    summary.write(tmp_path, own | {"models": models})
    text = write_report(tmp_path).read_text()
    assert "0.7000" in text
    assert "oracle's slate" not in text


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(DataError, match="finished run or demo"):
        write_report(tmp_path)


@pytest.mark.slow
def test_a_browser_renders_it(page, tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    assert browser, "Chromium is missing; `make chromium` installs it"
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
    shot = tmp_path / "page.png"
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    command = [browser, *flags, profile, "--window-size=1100,1800", f"--screenshot={shot}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=90)
    from matplotlib.image import imread

    pixels = imread(shot)
    assert pixels.shape[:2] == (1800, 1100)
    assert len({tuple(pixel) for pixel in (pixels[::7, ::7] * 255).astype(int).reshape(-1, pixels.shape[2])}) > 20


def test_a_federated_run_has_its_tables_and_its_curve(tmp_path):
    history = [{"round": 1}, {"round": 2, "auc": 0.61}, {"round": 4, "auc": 0.6666}]
    per_setting = {"cpp2": 0.6666}
    found: dict[str, Any] = {
        "name": "films", "seconds": 9.0, "bundle": {"version": "films-abc"},
        "federated": {"auc": {**per_setting, "central": 0.7}, "bytes_per_client_round": {"cpp2": 281234.0},
                      "epsilon": {"cpp2": 2.708}, "epsilon_composed": {"cpp2": 221.5}, "epsilon_noise": {"cpp2": 7.25},
                      "kept": {"cpp2": 0.88, "central": 1.0}, "served": "cpp2"},
        "settings": {"cpp2": {"history": history, "bytes_per_phase": {"train": {"up": 1000.0, "down": 2000.0}},
                              "bytes_by_formula_per_phase": {"train": [900.0, 1900.5]},
                              "seconds_per_phase": {"train": 0.25}},
                     "central": {"history": history, "bytes_per_phase": {}}},
    }
    summary.write(tmp_path, found)
    page = write_report(tmp_path).read_text()
    assert "cpp2 (served)" in page
    del found["federated"]["epsilon_noise"], found["settings"]["cpp2"]["bytes_by_formula_per_phase"]
    summary.write(tmp_path, found)
    assert "221.5" in write_report(tmp_path).read_text()  # a run of before they were counted
    for shown in ("221.5", "7.25", "281,234", "2,000", "900.0", "1,900"):
        assert shown in page
    assert "Federated rounds" in page
    assert "train" in page


def test_days_with_drifting_tastes_are_a_plot(tmp_path):
    day = {"day": 8, "share_of_oracle": {"updates itself": 0.8, "trained once": 0.7},
           "standard_error": {"updates itself": 0.01, "trained once": 0.01}}
    summary.write(tmp_path, {"name": "days", "seconds": 1.0, "days": [day, {**day, "day": 9}]})
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert "Days with drifting tastes" in page
