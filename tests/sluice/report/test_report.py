"""The report as a reader gets it: one page, nothing fetched, rendered by a real browser, whatever was done."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.errors import DataError
from contracts.summaries import summary
from contracts.summaries.days import PlatformDay
from contracts.summaries.demo import (
    BaselineBytes,
    CrossEvaluation,
    PairRateEvaluation,
    ServingFigures,
    SlateEvaluation,
    SlateShares,
    StageLosses,
)
from contracts.summaries.features import DrawnRows
from contracts.summaries.run import EvaluatedCrosses, EvaluatedRanker, RunSummary
from contracts.summaries.train import AgeRecall, ChannelRecall, ChannelsSummary, ChannelSummary
from sluice.report.gathered import JOBS
from sluice.report.report import write_report
from tests.browser import Browser
from tests.sluice import run_records as records

TRAINED = records.trained()
PLANTED = CrossEvaluation(planted=6, found=5, incidental=1, precision=0.8, recall=0.83, share_of_oracle={})
DEMO = RunSummary(
    name="marketplace", marketplace_version="2", seconds=200.5, ranker="dnn",
    models={name: EvaluatedRanker(**figures.model_dump(), oracle_auc=0.75, share_of_oracle=0.9284)
            for name, figures in TRAINED.models.items()},
    slate=SlateEvaluation(
        clicks=SlateShares(random=0.2, popularity=0.4, funnel=0.8123),
        value=SlateShares(random=0.1, popularity=0.3, funnel=0.7876),
        loss=StageLosses(retrieve=0.05, prerank=0.03, rank=0.1, rerank=0.0)),
    serving=ServingFigures(requests=800, errors=0, p50_ms=4.2, p99_ms=9.1),
    parity=records.PARITY,
    bundle=records.bundle(version="marketplace-abc"),
    features=records.features(), leaks=records.leaks(), train=TRAINED, pretrain=records.pair_rates(),
    prerank=records.prerank(),
    crosses=EvaluatedCrosses(**records.crosses().model_dump(), **PLANTED.model_dump()),
    pair_rates=PairRateEvaluation(
        zero_bucket_mse={"mean": 0.00127, "table": 0.00133, "factorisation": 0.0011, "pcf_gnn": 0.00081},
        bytes=BaselineBytes(pcf_gnn=1, table=2, dense=3),
        auc={"none": 0.7217, "table": 0.7219, "factorisation": 0.7216, "pcf_gnn": 0.7229}),
    skipped={},
)


def text_of(folder: Path) -> str:
    return write_report(folder).read_text(encoding="utf-8")


def test_a_served_model_that_is_too_good_to_be_true_is_warned_of(tmp_path: Path) -> None:
    summary.write(tmp_path, RunSummary(name="x", ranker="dnn", models={"dnn": records.ranker(validation_auc=1.0)}))
    assert "too good to be true" in text_of(tmp_path)


def test_a_log_of_positives_alone_is_explained(tmp_path: Path) -> None:
    drawn = DrawnRows(positives=9, negatives=36, newcomers=1, repeats=0, exhausted=0, items=5, per_positive=4,
                      popularity=0.0, written=())
    assert "positives alone" not in text_of_run(tmp_path, DEMO)
    assert "against those drawn rows" in text_of_run(
        tmp_path, DEMO.model_copy(update={"features": records.features(drawn=drawn)}))


def text_of_run(folder: Path, run: RunSummary) -> str:
    summary.write(folder, run)
    return text_of(folder)


@pytest.fixture
def page(tmp_path: Path) -> Path:
    summary.write(tmp_path, DEMO)
    summary.write(tmp_path / "models" / "dnn", records.ranker(curves=records.curves()))
    return write_report(tmp_path)


def test_the_page_holds_every_figure_and_needs_nothing_else(page: Path) -> None:
    text = page.read_text()
    figures = ("0.7321", "0.9284", "0.8123", "0.7876", "0.7123", "4.2 ms", "0.9876", "8.2500", "173.2")
    for part in (*figures, "marketplace-abc", "Where the funnel loses value", "5 of the 6 planted ones"):
        assert part in text
    fetched = re.findall(r"(?:src|href)=\"(?!#)([^\"]*)\"|url\((?!#)([^)]*)\)|@import", text)
    assert [match for match in fetched if any(match)] == []
    assert "Not in this report" not in text


def test_the_page_shows_auc_by_bucket_memory_and_the_error_against_the_truth(page: Path) -> None:
    text = page.read_text()
    for part in ("city_x_brand_rate", "18971", "0.6111", "0.7111", "47652", "280056", "397600", "8.1", "0.7229"):
        assert part in text


@pytest.mark.parametrize("done", [
    ("features",), ("train",), ("crosses",), ("prerank",), ("bundle",), ("pretrain",), ("leaks",),
    ("features", "leaks", "pretrain", "train", "bundle"), ("federate",),
])
def test_any_jobs_alone_make_a_page_that_names_what_is_missing(done: tuple[str, ...], tmp_path: Path) -> None:
    records.write_jobs(tmp_path, *done)
    text = text_of(tmp_path)
    if done == ("federate",):
        assert "not done here; run `sluice bundle`" in text
    else:
        assert {command for name, command in JOBS.items() if name not in done} <= set(
            re.findall(r"not done here; run `(.*?)`", text))


@pytest.mark.slow
def test_every_job_of_a_whole_run_may_be_left_out(tmp_path: Path) -> None:
    for name in JOBS:
        summary.write(tmp_path, DEMO.model_copy(update={name: None}))
        assert f"not done here; run `{JOBS[name]}`" in text_of(tmp_path)


def test_what_the_log_leaves_out_is_said_with_its_reason(tmp_path: Path) -> None:
    summary.write(tmp_path, DEMO.model_copy(update={"skipped": {"item_index": "the log has no items"}}))
    text = text_of(tmp_path)
    assert "item index" in text
    assert "the log has no items" in text


def test_a_run_without_a_marketplace_shows_what_it_has(tmp_path: Path) -> None:
    summary.write(tmp_path, RunSummary(
        name="shop", seconds=1.0, ranker="dnn", models=TRAINED.models, bundle=records.bundle()))
    text = text_of(tmp_path)
    assert "0.7321" in text
    assert "oracle's slate" not in text


def test_channels_of_retrieval_are_a_table(tmp_path: Path) -> None:
    at = ChannelRecall(quotas={"sasrec": 30}, mixed=0.8125, alone={"sasrec": 0.6875},
                       by_age={"new": AgeRecall(clicks=7, mixed=0.9062, alone={"sasrec": 0.1875})})
    found = ChannelsSummary(quotas={"sasrec": 100}, chosen_by="slates", validation_clicks=9, test_clicks=8,
                            recall={"100": at})
    channel = ChannelSummary(
        seconds=1.0, rows_per_second=9.0, rounds=1, actions=9, users=3, items=4, validation_targets=2,
        recall_at_10=0.3125, recall_at_100=0.4375, ndcg_at_10=0.1875, mrr=0.0625, coverage_at_10=0.5625,
        novelty_at_10=9.1875, recall_by={"age": {"new": 0.0, "above": 0.9375}})
    train = TRAINED.model_copy(update={"channels": {"sasrec": channel}})
    summary.write(tmp_path, RunSummary(name="shop", retrieval=found, train=train))
    text = text_of(tmp_path)
    for part in ("Retrieval by channel", "sasrec", "0.8125", "0.6875", "0.0625", "0.5625", "9.1875", "above 0.9375",
                 "Found by age of the item", "0.9062", "chosen by what the ranker would show"):
        assert part in text
    summary.write(tmp_path, RunSummary(name="shop", retrieval=found.model_copy(update={"chosen_by": "clicks"})))
    assert "chosen by 9 clicks of validation" in text_of(tmp_path)


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="finished run or demo"):
        write_report(tmp_path)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.mark.slow
def test_a_browser_draws_its_plots(page: Path, browser: Browser) -> None:
    from matplotlib.image import imread

    browser.open(page.as_uri(), 1100)
    pixels = imread(io.BytesIO(browser.picture()), format="png")
    assert pixels.shape[1] == 1100
    assert len({tuple(pixel) for pixel in (pixels[::7, ::7] * 255).astype(int).reshape(-1, pixels.shape[2])}) > 20


@pytest.mark.slow
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [320, 390, 1440])
def test_nothing_is_wider_than_the_page_or_cut_or_faint(page: Path, browser: Browser, width: int, dark: bool) -> None:
    write_report(page.parent, since=page.parent)
    browser.open(page.as_uri(), width, dark)
    assert "What changed since the last run" in browser.value("document.body.innerText")
    assert browser.misfits() == []
    assert browser.faint() == []


@pytest.mark.slow
def test_every_table_sorts_by_each_of_its_columns(page: Path, browser: Browser) -> None:
    browser.open(page.as_uri(), 1440)
    assert browser.misfits() == []
    assert browser.value("document.querySelectorAll('table.stacked').length") == 0  # a desk has room for rows
    titles = "[...document.querySelectorAll('table')].flatMap((one) => [...one.rows[0].cells])"
    assert browser.value(f"{titles}.every((title) => title.querySelector('button').textContent.trim())")
    shown = """(() => {
        const tables = [...document.querySelectorAll("table")];
        const table = tables.find((one) => one.textContent.includes("log loss"));
        table.querySelectorAll("button")[1].click();
        return [...table.rows].slice(1).map((one) => Number(one.cells[1].textContent));
    })()"""
    falling, rising = browser.value(shown), browser.value(shown)
    assert len(falling) > 1
    assert falling == sorted(falling, reverse=True) == rising[::-1]


def test_a_federated_run_has_its_tables_and_its_curve(tmp_path: Path) -> None:
    made = records.federated()
    summary.write(tmp_path, RunSummary(
        name="films", seconds=9.0, bundle=records.bundle(), federated=made.federated, settings=made.settings))
    text = text_of(tmp_path)
    for shown in ("cpp2 (served)", "221.5", "7.25", "281,234", "2,000", "900.0", "1,900", "Federated rounds", "train"):
        assert shown in text


def test_what_federated_rounds_say_of_a_client_is_in_the_report_also_of_a_deployment(tmp_path: Path) -> None:
    made = records.federated()
    summary.write(tmp_path, RunSummary(name="films", federated=made.federated, settings=made.settings))
    summary.write(tmp_path / "federated" / "runs" / "cpp2-flower", records.deployed())
    text = text_of(tmp_path)
    for shown in ("only holder seen", "0.0831", "0.3125", "by sums", "0.25", "1.032", "0.6543",
                  "Deployed federated rounds", "nobody but the clients"):
        assert shown in text
    assert text.count("only holder is seen") == 2


def test_days_with_drifting_tastes_are_a_plot(tmp_path: Path) -> None:
    shares = {"updates itself": 0.8, "trained once": 0.7}
    days = tuple(PlatformDay(day=number, share_of_oracle=shares, standard_error=shares, champion="a", refused="",
                             seconds=1.0) for number in (8, 9))
    summary.write(tmp_path, RunSummary(name="days", seconds=1.0, days=days))
    assert "Days with drifting tastes" in text_of(tmp_path)


def test_suspected_fields_are_shown_with_their_values_and_a_check_that_was_not_made_says_why(tmp_path: Path) -> None:
    records.write_jobs(tmp_path, "leaks")
    text = text_of(tmp_path)
    for part in ("1 of 2 fields are suspected", "it is a copy", "no value", "AUC of one field alone"):
        assert part in text
    summary.write(tmp_path / "leaks", records.leaks(suspected={}))
    assert "0 of 2 fields are suspected" in text_of(tmp_path)
    summary.write(tmp_path / "leaks", records.leaks(suspected={}, fields={}, skipped="too few rows"))
    assert "Left out: too few rows" in text_of(tmp_path)
