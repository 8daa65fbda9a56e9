"""Quotas are chosen by the real retrieval over a bundle of the snapshot, and the next bundle has them."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from contracts.artifacts import SHOWN, TIME, Artifacts
from contracts.config.config import Config
from contracts.features.feature_spec import FeatureSpec
from contracts.summaries import summary
from contracts.summaries.train import ChannelsSummary
from contracts.windows import TimedWindows
from serving.assembly.assemble import assemble
from serving.bundle.bundle_settings import BundleSettings
from serving.replay import item_snapshot, past_requests
from serving.replay.item_snapshot import SnapshotArtifacts
from sluice.run.channel_quotas import choose_quotas
from tests.serving.conftest import RING, make_config, make_market, write_outputs
from tests.serving.replay.log_times import HOURS, START, TEST
from tests.serving.replay.six_day_log import write_log

VALIDATION = TEST - timedelta(days=1)
Chosen = tuple[Config, Artifacts, ChannelsSummary]


@pytest.fixture(scope="module", params=["auction", "mmr"])
def chosen(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Chosen:
    """By value, and where bids count for nothing."""
    folder: Path = tmp_path_factory.mktemp("quotas")
    config = make_config(retrieve={"channels": {"sasrec": {"settings": RING["sasrec"]["settings"]}}},
                         rerank={"kind": request.param})
    market, trained = make_market(config), Artifacts(folder / "trained")
    write_outputs(market, trained)
    out = write_log(market, trained, folder / "out")
    shutil.copytree(out.examples("test"), out.examples("validation"))
    end = START + (TEST - START) * HOURS
    spans = {"train": (START, TEST), "validation": (VALIDATION, end), "test": (TEST, end)}
    TimedWindows(spans=spans).write(out.windows)
    return config, out, choose_quotas(config, out, 0, lambda *_: None)


@pytest.mark.slow
def test_quotas_are_the_candidates_and_every_channel_has_its_recall(chosen: Chosen) -> None:
    config, out, made = chosen
    assert summary.read(out.channels, ChannelsSummary) == made
    assert sum(made.quotas.values()) == config.retrieve.candidates
    assert made.chosen_by == ("slates" if config.rerank.kind == "auction" else "clicks")
    found = made.recall[str(config.retrieve.candidates)]
    assert set(found.alone) == set(made.quotas) == {"two_tower", "item_to_item", "popularity", "sasrec"}
    assert made.test_clicks > 0
    assert found.mixed is not None
    assert all(share is not None and 0 <= share <= 1 for share in found.alone.values())


@pytest.mark.slow
def test_counters_know_no_click_that_quotas_are_chosen_or_judged_by(
    chosen: Chosen, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, out, _ = chosen
    real, counted = past_requests.sample, dict[str, int]()

    def sample(out: Artifacts, spec: FeatureSpec, items: Any, window: str, *rest: Any) -> Any:
        counted[window] = pc.sum(pq.read_table(SnapshotArtifacts(out.out).online_items)[SHOWN]).as_py()
        return real(out, spec, items, window, *rest)

    monkeypatch.setattr(past_requests, "sample", sample)
    choose_quotas(config, out, 0, lambda *_: None)
    assert counted == {window: item_snapshot.events(out, [TIME], None, start).num_rows
                       for window, start in (("validation", VALIDATION), ("test", TEST))}


def test_clicks_of_every_age_of_an_item_add_up_to_all(chosen: Chosen) -> None:
    _, _, made = chosen
    for found in made.recall.values():
        assert sum(of.clicks for of in found.by_age.values()) == made.test_clicks
        assert sum(of.clicks * of.mixed for of in found.by_age.values()) == pytest.approx(
            (found.mixed or 0) * made.test_clicks)
        assert all(set(of.alone) == set(found.alone) for of in found.by_age.values())


def test_the_bundle_has_the_chosen_quotas(chosen: Chosen, tmp_path: Path) -> None:
    config, out, made = chosen
    assemble(config, out, tmp_path / "build")
    retrieve = BundleSettings.read(tmp_path / "build").retrieve
    assert retrieve.channels["sasrec"].quota == made.quotas["sasrec"]
    assert (retrieve.two_tower, retrieve.item_to_item) == (made.quotas["two_tower"], made.quotas["item_to_item"])
