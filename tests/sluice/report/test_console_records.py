"""What past days left behind becomes tables: each from its own summary, and nothing from what is not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contracts.bundle import bundle
from contracts.config.days import Watch
from contracts.errors import ConfigError
from contracts.features.feature_spec import FeatureField, FeatureSpec
from contracts.release import gate, watch
from contracts.release.gate import Estimate, GateSummary, MedianMilliseconds, RankingGain
from contracts.release.registration import RollbackResult
from contracts.release.watch import WatchSummary
from contracts.summaries import summary
from contracts.summaries.bundle import BundleMetrics, ModelMetrics, ParityFigures
from contracts.summaries.quality import Finding, QualitySummary
from models.tracking.bundle_registry import BundleRegistry, Lineage
from sluice.report.console_records import Section, main, sections
from tests.sluice import run_records as records


def by_title(folder: Path) -> dict[str, Section]:
    return {section.title.partition(":")[0]: section for section in sections(folder)}


def write_day(run: Path, *, refused: bool = False) -> None:
    figures = (Finding(figure="psi.device", value=0.4, high=0.2), Finding(figure="psi.hour", value=0.01, high=0.2))
    summary.write(run / "quality" / "day=2026-01-07", QualitySummary(
        day="2026-01-07", history=("2026-01-06",), judged=2, refused=("column 'device': the drift",),
        columns=("device",), figures=figures))
    about = {"value": 1.1, "standard_error": 0.1, "low": 0.9, "high": 1.3}
    summary.write(run / gate.FOLDER, GateSummary(
        challenger="shop-2", champion="shop-1", calibration=Estimate(**about),
        difference=RankingGain(figure="GAUC", value=0.01, standard_error=0.002, low=0.006, high=0.014),
        milliseconds=MedianMilliseconds(challenger=2.5, champion=2.25), reasons=("calibration",) if refused else ()))
    summary.write(run / watch.FOLDER, WatchSummary(
        bundle="shop-2", since="a", until="b", answers=900, figures=(), not_judged=(), reasons=("error rate",),
        settings=Watch(), roll_back=RollbackResult(rolled_back=True, champion="shop-1", number="1", left="shop-2")))


def test_days_are_told_with_the_figures_of_gate_and_watch(tmp_path: Path) -> None:
    write_day(tmp_path / "runs" / "day-1", refused=True)
    write_day(tmp_path / "runs" / "day-2")
    newest, before = by_title(tmp_path / "runs")["Days"].rows
    assert (newest[0], before[0]) == ("day-2", "day-1")
    assert newest[1:6] == ("shop-2", "2026-01-07: column 'device': the drift", "+0.0100 (+0.0060 to +0.0140)",
                           "1.100 (0.900 to 1.300)", "2.50 / 2.25")
    assert newest[6:] == ("promoted", "rolled back to shop-1: error rate")
    assert before[6] == "refused: calibration"


def test_the_drift_of_the_log_goes_by_its_size(tmp_path: Path) -> None:
    write_day(tmp_path)
    drift = by_title(tmp_path)["Drift of the log on 2026-01-07"]
    assert drift.rows == (("device", 0.4, 0.2, "refused"), ("hour", 0.01, 0.2, None))


def test_a_run_tells_crosses_frontier_costs_and_rounds(tmp_path: Path) -> None:
    records.write_jobs(tmp_path, "crosses", "prerank", "bundle")
    summary.write(tmp_path / "federated", records.federated())
    found = by_title(tmp_path)
    crosses, prerank = records.crosses(), records.prerank()
    assert [row[0] for row in found["Found crosses"].rows] == [" x ".join(one.parts) for one in crosses.crosses]
    frontier = found["The pre-ranker's frontier"]
    assert len(frontier.rows) == len(prerank.frontier)
    assert frontier.curve is not None
    assert {row[0] for row in found["Field costs"].rows} == set(prerank.costs)
    rounds = found["Federated rounds"]
    assert [row[0] for row in rounds.rows] == list(records.federated().settings)
    assert rounds.rows[0][rounds.columns.index("only holder seen")] == 0.0831
    assert rounds.rows[0][rounds.columns.index("held rows proven")] == 0.3125
    assert "Deployed federated rounds" not in found
    summary.write(tmp_path / "federated" / "runs" / "cpp2-flower", records.deployed())
    led = by_title(tmp_path)["Deployed federated rounds"]
    assert dict(zip(led.columns, led.rows[0], strict=True))["predicted / observed"] == 1.0321


@pytest.mark.slow
def test_versions_of_the_registry_are_told_with_what_became_of_them(tmp_path: Path) -> None:
    registry = BundleRegistry(f"sqlite:///{tmp_path / 'mlflow.db'}")
    first, second, third = (
        registry.register(a_bundle(tmp_path, name), Lineage("2026-01-01", "2026-01-08T00:00:00+00:00"))
        for name in ("one", "two", "three"))
    for version in (first, second):
        registry.promote(version)
    registry.rollback("shop")
    registry.tag(third, refused="calibration 1.6 is above 1.5")
    told = by_title(tmp_path)["Versions in the registry"]
    found = [dict(zip(told.columns, row, strict=True)) for row in told.rows]
    assert [(row["bundle"], row["version"]) for row in found] == [
        (version.version, int(version.number)) for version in (third, second, first)]
    assert [row["now"] for row in found] == ["challenger", None, "champion"]
    assert [row["refused"] for row in found] == ["calibration 1.6 is above 1.5", None, None]
    assert {(row["test AUC"], row["data until"]) for row in found} == {(0.75, "2026-01-08 00:00")}
    moments = [[bool(row[name]) for name in ("promoted", "rolled back")] for row in found]
    assert moments == [[False, False], [True, True], [True, False]]
    assert sections(tmp_path, f"sqlite:///{tmp_path / 'mlflow.db'}")[-1] == told


@pytest.mark.parametrize("told", ["nan", "inf", "high"])
def test_a_figure_of_another_s_tag_that_is_no_number_is_an_empty_cell(tmp_path: Path, told: str) -> None:
    """JSON has no word for it, so that the console would answer with an error."""
    registry = BundleRegistry(f"sqlite:///{tmp_path / 'mlflow.db'}")
    registry.tag(registry.register(a_bundle(tmp_path, "one"), Lineage("", "")), test_auc=told)
    found = by_title(tmp_path)["Versions in the registry"]
    assert dict(zip(found.columns, found.rows[0], strict=True))["test AUC"] is None


def a_bundle(folder: Path, content: str) -> Path:
    """One by its manifest; the registry does not look further."""
    build = folder / f"build-{content}"
    build.mkdir()
    FeatureSpec(fields=(FeatureField(name="device", kind="categorical", side="context", vocabulary="device", size=4),)
                ).write(build)
    (build / "weights").write_text(content)
    metrics = BundleMetrics(ranker="dnn", models={"dnn": ModelMetrics(auc=0.75)},
                            parity=ParityFigures(rows=0, mismatches=0, max_logit_difference=0.0))
    bundle.publish(build, folder / content, "shop", metrics=metrics)
    return folder / content


def test_an_empty_folder_has_nothing_and_a_damaged_summary_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sections(tmp_path) == []
    (tmp_path / "bundle_job").mkdir()
    (tmp_path / "bundle_job" / "summary.json").write_text("{")
    main([str(tmp_path)])
    assert "is damaged" in json.loads(capsys.readouterr().out)["error"]


def test_a_registry_that_fails_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(tmp_path), "--registry", "nosuch://user:secret@host/name"])
    told = json.loads(capsys.readouterr().out)["error"]
    assert "nosuch" in told
    assert "secret" not in told
    assert "\n" not in told


def test_the_registry_is_the_environment_s_and_its_password_is_not_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []

    def failing(folder: Path, registry: str | None) -> list[Section]:
        asked.append(registry)
        raise ConfigError(f"{registry} does not answer")

    monkeypatch.setenv("MLFLOW_TRACKING_URI", "postgresql://user:secret@host/name")
    monkeypatch.setattr("sluice.report.console_records.sections", failing)
    main([str(tmp_path)])
    assert asked == ["postgresql://user:secret@host/name"]
    told = json.loads(capsys.readouterr().out)
    assert told == {"error": "postgresql://user:***@host/name does not answer"}
