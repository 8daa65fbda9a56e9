"""What a bundle retrieves of a test window's clicks, beside the same requests replayed one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from contracts.artifacts import ITEM, ROW, TIME, Artifacts
from serving.bundle.loaded_bundle import LoadedBundle
from serving.replay import channel_recall, past_requests
from serving.replay.bundle_comparison import TestWindow, read_window
from serving.replay.retrieval_comparison import found, sample


@pytest.fixture(scope="module")
def window(log: Artifacts) -> TestWindow:
    return read_window(log)


def test_only_clicked_rows_are_asked_for_each_once(window: TestWindow) -> None:
    clicks = sample(window, 50, seed=1)
    assert len(np.unique(clicks)) == 50
    assert (window.labels[clicks] == 1).all()
    assert len(sample(window, 10**6, seed=1)) == window.labels.sum()


def test_a_log_without_users_or_times_is_not_asked(window: TestWindow) -> None:
    assert len(sample(replace(window, has_users=False), 50, 1)) == 0
    assert len(sample(replace(window, table=window.table.drop_columns([TIME])), 50, 1)) == 0


def test_found_is_what_the_replayed_requests_find(
    market: Any, log: Artifacts, loaded: LoadedBundle, window: TestWindow
) -> None:
    """The other way: requests by the encoded examples of the log, as the quotas are chosen by them."""
    clicks = sample(window, 10**6, seed=0)
    asked = past_requests.sample(log, market.spec, loaded.items, "test", 0, 10**6, 0, np.random.default_rng(0))
    retrieve = loaded.settings.retrieve
    expected = channel_recall.places(loaded, asked, retrieve) < retrieve.candidates
    rows = window.table[ROW].to_numpy()
    assert len(asked) == len(clicks) == len(np.unique(rows[clicks]))
    hits = found(log, loaded, window, clicks)
    assert 0 < hits.sum() < len(hits)
    assert hits.sum() == expected.sum()


def test_an_item_that_the_bundle_does_not_hold_is_not_found(
    log: Artifacts, loaded: LoadedBundle, window: TestWindow
) -> None:
    place = window.table.schema.get_field_index(ITEM)
    strange = window.table.set_column(place, ITEM, pa.array(["nothing"] * window.table.num_rows))
    assert not found(log, loaded, replace(window, table=strange), sample(window, 20, seed=0)).any()
