from __future__ import annotations

import pytest

from contracts.errors import DataError
from contracts.summaries import summary
from contracts.summaries.days import DaysSummary, PlatformDay
from contracts.summaries.run import EvaluatedRanker, RunSummary
from contracts.summaries.train import RankerSummary

RANKER = RankerSummary(
    auc=0.7, log_loss=0.2, ece=0.01, gauc_users=0, gauc_skipped=0, rows=100, positives=7, auc_standard_error=0.01,
    ece_uncalibrated=0.02, validation_auc=0.71, position_bias=(0.0,), seconds=2.0, rows_per_second=50.0, epochs=1,
    best_epoch=1, history=(), by_position={},
)
EVALUATED = EvaluatedRanker(**RANKER.model_dump(), oracle_auc=0.75, share_of_oracle=0.8)


@pytest.mark.parametrize("ranker", [RANKER, EVALUATED])
def test_a_model_comes_back_as_what_it_was_with_the_oracle_beside_it_or_without(tmp_path, ranker) -> None:
    whole = RunSummary(name="t", ranker="dnn", models={"dnn": ranker}, seconds=4.0)
    summary.write(tmp_path, whole)
    found = summary.required(tmp_path, RunSummary, "sluice run")
    assert found == whole
    assert found.models is not None
    assert type(found.models["dnn"]) is type(ranker)


def test_a_run_without_a_job_has_none_of_its_figures(tmp_path) -> None:
    summary.write(tmp_path, RunSummary(name="t"))
    assert (tmp_path / summary.FILE).read_text().split() == ["{", '"name":', '"t"', "}"]


def test_a_benchmark_of_days_is_read_as_a_run(tmp_path) -> None:
    day = PlatformDay(
        day=8, share_of_oracle={"a": 0.7}, standard_error={"a": 0.1}, champion="t-1", refused="", seconds=1.0)
    summary.write(tmp_path, DaysSummary(name="t", marketplace_version="1", days=(day,), seconds=2.0))
    assert summary.required(tmp_path, RunSummary, "sluice bench days").days == (day,)


def test_a_key_that_no_run_has_is_refused(tmp_path) -> None:
    (tmp_path / summary.FILE).write_text('{"name": "t", "auc": 0.5}', encoding="utf-8")
    with pytest.raises(DataError, match="auc"):
        summary.read(tmp_path, RunSummary)
