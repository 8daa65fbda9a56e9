"""The work behind all servers is the platform's own; each library is needed by its own server alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.serving import score_apps
from benchmarks.serving.funnel import VALUES, world
from benchmarks.serving.synthetic_bundle import publish
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.deadline import Deadline
from serving.request.query import ScoreQuery
from serving.stages.funnel import Funnel

ITEMS = ["i3", "i7", "i1"]


def test_what_is_scored_is_what_the_funnel_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = publish(world(300, "dnn"), tmp_path, VALUES)
    monkeypatch.setenv(score_apps.BUNDLE, str(folder))
    query = ScoreQuery("u1", tuple(ITEMS), {"context0": "v1"})
    expected = Funnel(LoadedBundle.load(folder)).begin_score(query, Deadline(None))
    assert score_apps.BundleScorer.named().score("u1", ITEMS) == expected.complete().probabilities


def test_no_library_is_looked_for_before_its_server_is() -> None:
    assert set(score_apps.PEERS) == {"fastapi", "litserve", "bentoml", "mlflow", "ray_serve"}
    with pytest.raises(AttributeError, match="AnotherApi"):
        score_apps.AnotherApi  # noqa: B018
