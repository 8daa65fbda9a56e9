"""Candidates of past requests: each window's lists, retrieved with the items as the test window's start found them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from contracts.artifacts import WINDOWS, Artifacts
from contracts.bundle.candidate_lists import CandidateItems, CandidateLists
from contracts.windows import TimedWindows
from sluice.run.prerank_candidates import write_candidates
from tests.serving.conftest import make_config, make_market, write_outputs
from tests.serving.replay.log_times import HOURS, START, TEST
from tests.serving.replay.six_day_log import write_log

REQUESTS = 12


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Artifacts, list[tuple[str, int, int]]]:
    folder: Path = tmp_path_factory.mktemp("candidates")
    plain = make_config()
    config = plain.model_copy(update={"prerank": plain.prerank.model_copy(
        update={"requests": REQUESTS, "evaluation_requests": REQUESTS})})
    market, trained = make_market(plain), Artifacts(folder / "trained")
    write_outputs(market, trained)
    out = write_log(market, trained, folder / "out")
    shutil.copytree(out.examples("test"), out.examples("validation"))
    end = START + (TEST - START) * HOURS
    TimedWindows(spans={"train": (START, TEST), "validation": (TEST, end), "test": (TEST, end)}).write(out.windows)
    said: list[tuple[str, int, int]] = []
    write_candidates(config, out, market.spec, 0, lambda *at: said.append(at))
    return out, said


def test_every_window_gets_lists_of_known_items(written: tuple[Artifacts, list[tuple[str, int, int]]]) -> None:
    out, _ = written
    items = CandidateItems.load(out.candidates)
    for window in WINDOWS:
        lists = CandidateLists.load(out.candidates / window)
        with_clicks = 0 if window == "train" else REQUESTS  # evaluation draws as many again among requests with a click
        assert 0 < len(lists) <= REQUESTS + with_clicks
        assert np.asarray(lists.rows).max() < len(items.ids)


def test_the_bundle_of_the_snapshot_is_gone_and_each_window_was_said(
    written: tuple[Artifacts, list[tuple[str, int, int]]],
) -> None:
    out, said = written
    assert not (out.out / ".snapshot").exists()
    assert [done for _, done, _ in said] == [0, 0, 1, 2]
    assert {total for _, _, total in said} == {len(WINDOWS)}
