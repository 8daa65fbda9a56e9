"""The two runs differ in the sequence, and in the quotas that come with a further channel."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.models.sequence_tower import ARMS, CHANNEL, RANKER, arm_of, main, table
from contracts.config.config import Config, load
from contracts.config.stages import ENCODERS
from contracts.errors import ConfigError
from tests.benchmarks import tiny_market
from tests.benchmarks.printed_figures import all_finite, last_line, refuses

HISTORY = {"name": "recent_clicks", "kind": "sequence", "side": "user", "of": "item_id", "length": 5}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tiny_market, "MORE_FIELDS", [*tiny_market.MORE_FIELDS, HISTORY])
    return tiny_market.write(
        tmp_path / "tiny.toml", train={"models": ["popularity", "din"], "ranker": "best"}, spark={"master": "embedded"},
        retrieve={"channels": {"ease": {}}}, prerank={"kind": "towers"}, pair_rates={"pairs": [], "model": "none"})


def test_one_run_has_the_encoder_and_its_tower_and_the_other_neither(file: Path) -> None:
    without, with_tower = (arm_of(load(file), arm) for arm in ARMS)
    assert set(without.retrieve.channels) == {"ease"}
    assert set(with_tower.retrieve.channels) == {"ease", CHANNEL}
    assert without.train.models == ("popularity", "din")
    assert with_tower.train.models == ("popularity", "din", RANKER)


def test_an_encoder_that_is_configured_keeps_its_settings_and_is_missing_in_the_run_without(file: Path) -> None:
    config = load(file)
    channels = {name: config.retrieve.channels["ease"].model_copy(update={"quota": 7}) for name in ENCODERS}
    config = config.model_copy(update={"retrieve": config.retrieve.model_copy(update={"channels": channels})})
    assert arm_of(config, "with").retrieve.channels == {CHANNEL: channels[CHANNEL]}
    assert not arm_of(config, "without").retrieve.channels


def test_a_log_without_times_has_no_sequences(file: Path) -> None:
    config: Config = load(file)
    timeless = config.model_copy(update={"log": config.log.model_copy(update={"event_time": None})})
    with pytest.raises(ConfigError, match="tiny: a sequence is of users, items and times"):
        arm_of(timeless, "with")


def test_what_one_of_them_lacks_is_left_empty() -> None:
    lines = table({"without": {"models": {"din": {"auc": 0.5}}}, "with": {"models": {"din": {"auc": 0.75}, "x": 1}}})
    assert lines.splitlines()[2:] == ["| models din auc | 0.5000 | 0.7500 |", "| models x |  | 1 |"]


def test_a_folder_that_is_used_is_refused(file: Path, tmp_path: Path) -> None:
    assert refuses(main, str(file), "--out", str(tmp_path))


@pytest.mark.slow
def test_both_runs_are_compared_with_the_truth(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(file), "--out", str(tmp_path / "out"), "--visits", "8", "--json"])
    found = last_line(capsys.readouterr().out)["sequence_tower"]
    for arm in ARMS:
        assert all_finite(found[arm]["share_of_oracle"])
        assert 0 < found[arm]["share_of_oracle"]["clicks"] <= 1
        assert all(part >= -1e-9 for stage, part in found[arm]["lost"].items() if stage != "rank")
        assert found[arm]["p50_ms"] > 0
    assert set(found["with"]["models"]) - set(found["without"]["models"]) == {RANKER}
    assert found["with"]["models"]["din"] == found["without"]["models"]["din"]
    assert CHANNEL in found["with"]["quotas"]
    assert CHANNEL not in found["without"]["quotas"]
