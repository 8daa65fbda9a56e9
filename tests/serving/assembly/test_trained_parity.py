"""The published ranker must be the trained one; otherwise the check fires."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.artifacts import ROW, TEST_LOGITS, TEST_ROWS
from contracts.bundle.bundle import save_array
from contracts.errors import BundleError, ParityError
from serving.assembly.trained_parity import check_as_trained
from serving.bundle import parity

LIMIT = 1e-4


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """What training wrote of the rows 5, 3 and 4: a tenth of the row each."""
    save_array(tmp_path / "model" / TEST_ROWS, np.array([5, 3, 4]))
    save_array(tmp_path / "model" / TEST_LOGITS, np.array([0.5, 0.3, 0.4]))
    return tmp_path / "model"


def published(folder: Path, logits: dict[int, float]) -> Path:
    table = pa.table({ROW: list(logits), parity.LOGIT: pa.array(logits.values(), pa.float64())})
    pq.write_table(table, folder / parity.FILE)
    return folder


def test_equal_logits_pass_in_any_order(model: Path, tmp_path: Path) -> None:
    check_as_trained(model, published(tmp_path, {4: 0.4, 3: 0.3, 5: 0.5}), LIMIT)
    check_as_trained(model, published(tmp_path, {5: 0.5 + LIMIT / 2}), LIMIT)


@pytest.mark.parametrize("logit", [0.301, float("nan")])
def test_logits_that_training_did_not_write_are_refused(model: Path, tmp_path: Path, logit: float) -> None:
    with pytest.raises(ParityError, match=r"row 3: .*the one that training wrote, the limit is 0\.0001"):
        check_as_trained(model, published(tmp_path, {4: 0.4, 3: logit}), LIMIT)


def test_rows_that_training_did_not_score_are_refused(model: Path, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="training scored other rows"):
        check_as_trained(model, published(tmp_path, {3: 0.3, 9: 0.9}), LIMIT)


def test_without_logits_of_training_nothing_can_be_checked(model: Path, tmp_path: Path) -> None:
    (model / TEST_LOGITS).unlink()
    with pytest.raises(BundleError, match=r"has no test_logits\.npy; run `sluice train` again"):
        check_as_trained(model, published(tmp_path, {3: 0.3}), LIMIT)
