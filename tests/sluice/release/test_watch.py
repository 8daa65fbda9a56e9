"""The watch as a command: answers written by the response log, clicks drawn from known odds, a real registry."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from contracts.release.watch import WatchSummary
from contracts.summaries import summary
from models.tracking.bundle_registry import CHAMPION, BundleRegistry, Lineage
from serving.response_log.response_log import ResponseLog
from sluice.cli import app
from tests.serving.logged_responses import logged
from tests.sluice.market_run import market_run

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
BEFORE, CONFIG = "market-before", """
name = "market"
[log]
path = "log"
user_id = "user"
item_id = "item"
request_id = "request_id"
event_time = "time"
position = "position"
[label.clicks]
path = "{data}/clicks"
on = ["request_id", "item"]
event_time = "clicked"
[watch]
span = "2h"
min_answers = 300
click_wait = "10m"
[[fields]]
name = "item"
kind = "categorical"
side = "item"
"""


class Traffic:
    """Answers of a bundle, one a second, and clicks on position 1 with `truth` times the promised probability."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.draw, self.second = folder, np.random.default_rng(7), 0
        self.clicks: list[tuple[str, str, datetime]] = []
        (folder / "watch.toml").write_text(CONFIG)

    def serve(self, version: str, count: int, truth: float = 1.0, failed: float = 0.0, slow: float = 1.0,
              status: str = "INTERNAL", without: float | None = None) -> None:
        """`without`: share of the answers whose retrieval lacked a channel; None: nothing is told of stages."""
        log = ResponseLog(self.folder / "answers")
        for _ in range(count):
            self.second += 1
            name, when = f"r{self.second}", NOON + timedelta(seconds=self.second)
            ok, chance = self.draw.random() >= failed, float(self.draw.uniform(0.1, 0.4))
            items = [f"i{self.draw.integers(9)}", "ia"] if ok else []
            answer = logged(
                name, items, time=when, user=f"u{self.draw.integers(60)}", probabilities=[chance, 0.9][: len(items)],
                version=version, created=NOON, status="OK" if ok else status,
                microseconds=round(5000 * slow * self.draw.exponential()))
            if without is not None:
                ended = "degraded" if self.draw.random() < without else "complete"
                answer = replace(answer, stages=["retrieve", "rank"], stage_statuses=[ended, "complete"],
                                 stage_causes=["a channel is missing" if ended == "degraded" else "", ""])
            log.append(answer)
            if ok and self.draw.random() < truth * chance:
                self.clicks.append((name, items[0], when + timedelta(seconds=float(self.draw.uniform(0, 300)))))
        log.close()

    def watch(self, *options: str) -> tuple[int, WatchSummary | None, str]:
        (self.folder / "clicks").mkdir(exist_ok=True)
        columns = dict(zip(("request_id", "item", "clicked"), map(list, zip(*self.clicks, strict=True)), strict=True))
        pq.write_table(pa.table(columns), self.folder / "clicks" / "part.parquet")
        until = (NOON + timedelta(seconds=self.second + 1)).isoformat()
        command = ["watch", self.folder / "watch.toml", "--out", self.folder, "--answers", self.folder / "answers",
                   "--data", self.folder, "--until", until, "--json", *options]
        done = CliRunner().invoke(app, [*map(str, command)])
        assert isinstance(done.exception, SystemExit | None), done.exception
        return done.exit_code, summary.read(self.folder / "watch", WatchSummary), done.stdout + done.stderr


@pytest.fixture
def traffic(tmp_path):
    found = Traffic(tmp_path)
    found.serve(BEFORE, 800)
    return found


def test_a_sound_bundle_is_left_alone(traffic):
    traffic.serve("market-now", 2000)
    code, found, said = traffic.watch("--bundle", "market-now")
    assert (code, found.reasons, found.not_judged) == (0, (), ())
    assert [figure.name for figure in found.figures] == [
        "error_rate", "refusal_rate", "p99_ms", "p99_ratio", "predicted_over_observed"]
    assert found.previous == BEFORE
    assert said.count("fine ") == 5
    assert json.loads(said.splitlines()[-1])["bundle"] == "market-now"


@pytest.mark.parametrize(("wrong", "figure"), [
    ({"without": 0.2}, "incomplete_retrieval"),
    ({"failed": 0.05, "status": "DEADLINE_EXCEEDED"}, "error_rate"), ({"slow": 6.0}, "p99_ratio"),
    ({"slow": 30.0}, "p99_ms"),
    ({"truth": 0.5}, "predicted_over_observed"), ({"truth": 2.0}, "predicted_over_observed"),
])
def test_each_fault_is_found_by_its_figure(traffic, wrong, figure):
    traffic.serve("market-now", 2000, **wrong)
    code, found, said = traffic.watch("--bundle", "market-now")
    assert code == 4
    assert figure in [entry.name for entry in found.figures if entry.against]
    assert "WRONG" in said
    assert "should be rolled back" in said


def test_a_channel_that_is_rarely_left_out_is_no_reason(traffic):
    traffic.serve("market-now", 2000, without=0.02)
    code, found, said = traffic.watch("--bundle", "market-now")
    assert (code, found.reasons) == (0, ())
    assert "retrieval without a channel: 0.0" in said


def test_refusals_for_load_are_a_rate_of_their_own(traffic):
    traffic.serve("market-now", 600, failed=0.5, status="RESOURCE_EXHAUSTED")
    code, found, said = traffic.watch("--bundle", "market-now")
    assert (code, [figure.name for figure in found.figures if figure.against]) == (4, ["refusal_rate"])
    assert "error rate: 0.0000 of" in said


def test_too_little_to_go_by_is_said(traffic):
    traffic.serve("market-now", 120, failed=1.0)
    code, found, said = traffic.watch("--bundle", "market-now")
    assert (code, found.figures, found.not_judged) == (0, (), ("too few answers: 120 of 300",))
    assert "too few answers: 120 of 300" in said
    traffic.serve("market-now", 300)
    code, found, _ = traffic.watch("--bundle", "market-now", "--clicks", str(traffic.folder / "nowhere"))
    assert any("no clicks at" in sentence for sentence in found.not_judged)


@pytest.mark.parametrize(("was", "changed", "sentence"), [
    ('event_time = "clicked"', 'event_time = "clicked"\nformat = "csv"', "are csv (label.clicks.format)"),
    ('on = ["request_id", "item"]', 'on = ["request_id"]', "label.clicks.on must name"),
    ('event_time = "clicked"', 'event_time = "at"', "has no column 'at'"),
])
def test_clicks_that_cannot_be_read_cost_no_other_judgement(traffic, was, changed, sentence):
    traffic.serve("market-now", 800, failed=0.2)
    (traffic.folder / "watch.toml").write_text(CONFIG.replace(was, changed))
    code, found, _ = traffic.watch("--bundle", "market-now")
    assert (code, [figure.name for figure in found.figures if figure.against]) == (4, ["error_rate"])
    (said,) = found.not_judged
    assert said.startswith("predicted over observed clicks: ")
    assert sentence in said


def test_clicks_that_have_not_come_in_yet_are_not_held_against_the_bundle(traffic):
    traffic.serve("market-now", 2000, truth=0.0)
    code, found, _ = traffic.watch("--bundle", "market-now")
    assert code == 0
    assert any("too few clicks: 0.0 predicted" in sentence for sentence in found.not_judged)


def champion_number(store: BundleRegistry) -> str | None:
    champion = store.by_alias("market", CHAMPION)
    return champion.number if champion else None


@pytest.mark.slow
def test_the_champion_is_rolled_back_in_the_registry_once(traffic, tmp_path):
    store = BundleRegistry(f"sqlite:///{tmp_path / 'mlflow.db'}")
    first, second = (store.register(market_run(tmp_path / name, honest=name == "a").bundle, Lineage()) for name in "ab")
    store.promote(first)
    store.promote(second)
    traffic.serve(first.version, 700)
    traffic.serve(second.version, 2000, truth=0.3)
    code, found, _ = traffic.watch()
    assert (code, found.bundle, found.previous) == (4, second.version, first.version)
    assert champion_number(store) == second.number
    code, found, said = traffic.watch("--roll-back")
    assert (code, found.roll_back.champion) == (4, first.version)
    assert f"champion is {first.version}" in said
    assert champion_number(store) == first.number
    code, found, _ = traffic.watch("--roll-back")
    assert (code, found.bundle, champion_number(store)) == (0, first.version, first.number)


def test_wrong_use_is_said(tmp_path):
    traffic = Traffic(tmp_path)
    traffic.clicks.append(("r", "i", NOON))
    assert "no response log" in traffic.watch("--bundle", "market-now")[2]
    code, _, said = traffic.watch("--bundle", "b", "--since", "noon")
    assert (code, "'noon' is no time" in said) == (2, True)
    code, _, said = traffic.watch("--bundle", "b", "--since", "2027-01-01")
    assert (code, "is empty" in said) == (2, True)
    assert "has no champion" in traffic.watch()[2]
