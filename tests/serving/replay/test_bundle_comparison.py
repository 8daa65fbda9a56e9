"""Bundles are compared on the very rows of the test window, each by its own encoding and networks."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from contracts.artifacts import DRAWS, LABEL, POSITION, ROW, Artifacts
from contracts.errors import DataError, SchemaError
from serving.bundle.loaded_bundle import LoadedBundle
from serving.replay import bundle_comparison
from serving.replay.bundle_comparison import TestWindow, logits, median_milliseconds, read_window
from serving.request.request_features import block
from tests.serving.conftest import encode_events


@pytest.fixture(scope="module")
def window(log: Artifacts) -> TestWindow:
    return read_window(log)


def test_the_window_holds_the_test_rows_with_their_labels(window: TestWindow, market: Any) -> None:
    rows = window.table[ROW].to_numpy()
    assert rows.tolist() == list(range(rows[0], len(market.labels)))
    assert window.labels.tolist() == market.labels[rows].tolist()
    assert window.has_users
    assert len(window.users) == len(rows)


def test_without_users_every_row_is_a_user_of_its_own(log: Artifacts, window: TestWindow) -> None:
    table = window.table.drop_columns(["_user"])
    assert TestWindow(table, window.labels, table[ROW].to_numpy(), False).first_position.all()


def test_position_one_is_where_probabilities_are_promised(window: TestWindow) -> None:
    shown = pa.table({POSITION: [1, 2, 1, 3], LABEL: [0.0] * 4})
    placed = TestWindow(shown, np.zeros(4), np.arange(4), False)
    assert placed.first_position.tolist() == [True, False, True, False]
    assert window.first_position.all()


def test_rows_drawn_for_positives_tell_how_often(window: TestWindow) -> None:
    drawn = pa.table({DRAWS: [1.0, 0.5, 0.01], LABEL: [1.0, 0.0, 0.0]})
    assert np.exp(TestWindow(drawn, np.zeros(3), np.arange(3), True).log_draws) == pytest.approx([1, 0.5, 0.01])
    assert window.log_draws == 0


def test_scores_are_the_rankers_on_the_rows_encoded_here(
    window: TestWindow, market: Any, loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    request, candidate = (block(part) for part in encode_events(market))
    rows = torch.from_numpy(window.table[ROW].to_numpy().copy())
    with torch.inference_mode():
        expected = loaded.ranker(request, candidate)[rows].numpy()
    assert logits(loaded, window) == pytest.approx(expected, abs=1e-5)
    monkeypatch.setattr(bundle_comparison, "CHUNK_ROWS", 100)
    assert logits(loaded, window) == pytest.approx(expected, abs=1e-5)


def test_rows_that_lack_what_the_bundle_reads_are_refused(window: TestWindow, loaded: LoadedBundle) -> None:
    poorer = TestWindow(window.table.drop_columns(["brand"]), window.labels, window.users, True)
    with pytest.raises(SchemaError, match="brand"):
        logits(loaded, poorer)


def test_rows_without_features_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="sluice features"):
        read_window(Artifacts(tmp_path))


def test_every_bundle_is_timed(loaded: LoadedBundle) -> None:
    spent = median_milliseconds({"one": loaded, "two": loaded}, ["u01", "u02"], 3)
    assert spent.keys() == {"one", "two"}
    assert min(spent.values()) > 0


def test_time_in_which_others_compute_is_not_counted(loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count(0, 2_000_000)
    monkeypatch.setattr(time, "process_time_ns", ticks.__next__)
    assert median_milliseconds({"one": loaded, "two": loaded}, ["u01"], 3) == {"one": 2.0, "two": 2.0}
