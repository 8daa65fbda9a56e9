from __future__ import annotations

import json
from pathlib import Path

import pytest

from contracts.errors import DataError
from contracts.summaries import summary
from contracts.summaries.train import (
    EpochFigures,
    PositionFigures,
    RankerSummary,
    TrainSummary,
    TrialFigures,
    TuneSummary,
)

RANKER = RankerSummary(
    auc=0.7, log_loss=0.2, ece=0.01, gauc_users=0, gauc_skipped=0, rows=100, positives=7, auc_standard_error=0.01,
    ece_uncalibrated=0.02, validation_auc=0.71, position_bias=(0.0, -0.5), seconds=2.0, rows_per_second=50.0,
    epochs=1, best_epoch=1, history=(EpochFigures(epoch=1, train_loss=0.3, validation_loss=0.2, seconds=1.0),),
    by_position={"1": PositionFigures(rows=50, positives=0), "2": PositionFigures(ratio=1.0, rows=50, positives=7)},
)


def test_what_is_written_is_read_and_what_is_not_known_is_left_out(tmp_path) -> None:
    whole = TrainSummary(ranker="dnn", models={"dnn": RANKER}, seed=3, seconds=4.0)
    summary.write(tmp_path, whole)
    assert summary.read(tmp_path, TrainSummary) == whole
    plain = json.loads((tmp_path / "summary.json").read_text())
    assert "gauc" not in plain["models"]["dnn"]
    assert "ratio" not in plain["models"]["dnn"]["by_position"]["1"]
    assert "two_tower" not in plain


def test_a_federated_run_names_its_ranker_alone(tmp_path) -> None:
    summary.write(tmp_path, TrainSummary(ranker="dnn"))
    assert summary.required(tmp_path, TrainSummary, "sluice train").models == {}


def test_without_a_ranker_the_command_is_named(tmp_path) -> None:
    with pytest.raises(DataError, match="run `sluice train` first"):
        summary.required(tmp_path, TrainSummary, "sluice train")
    (tmp_path / "summary.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="ranker"):
        summary.read(tmp_path, TrainSummary)


def test_settings_keep_their_types_on_file(tmp_path: Path) -> None:
    """A whole number is no truth value, and widths stay widths."""
    trial = TrialFigures(number=0, model="dnn", state="complete", score=0.7, epochs=2, configured=True,
                         settings={"batch_size": 1, "hidden": (64, 32), "learning_rate": 0.001, "batch_norm": True})
    found = TuneSummary(
        monitor="auc", best=trial, configured=trial, gain=0.0, gain_standard_error=0.0, adopted=False, reason="so.",
        settings={}, importances={"hidden": 1.0}, trials=(trial,), rows=10, written="tuned.toml", seconds=1.0)
    summary.write(tmp_path, found)
    again = summary.read(tmp_path, TuneSummary)
    assert again == found
    assert again is not None
    assert {name: type(value) for name, value in again.best.settings.items()} == {
        "batch_size": int, "hidden": tuple, "learning_rate": float, "batch_norm": bool}
