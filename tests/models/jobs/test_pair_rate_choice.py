from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

from contracts.artifacts import WINDOWS, Artifacts
from contracts.config.config import Config
from contracts.features.feature_spec import FIRST_ID, FeatureSpec
from contracts.features.pair_graph import GraphManifest
from contracts.summaries import summary
from contracts.summaries.pair_rates import PairRatesSummary
from models.jobs.pair_rate_choice import choose_pair_rates
from models.pair_rates import job as pretrain_job
from models.pair_rates.graph import PairGraph
from models.training import fitting
from models.training.loop import FitResult
from tests.models.jobs.two_processes import train_in_two
from tests.models.stored_graph import store

ROWS = {"train": 600, "validation": 4000, "test": 10}
Chances = Callable[[np.ndarray, np.ndarray], np.ndarray]


def config(judge: bool = True, epochs: int = 10) -> Config:
    return Config.model_validate({
        "name": "t", "seed": 3, "log": {"path": "log", "user_id": "u"}, "label": {"expression": "clicked"},
        "fields": [{"name": "city", "kind": "categorical", "side": "user"}],
        "pair_rates": {"model": "table", "smoothing": 2.0, "judge": judge},
        "train": {"models": ["dnn"], "embedding_dim": 4, "hidden": [16], "batch_size": 50, "epochs": epochs,
                  "learning_rate": 1e-2, "device": "cpu"},
    })


class Run:
    """Examples whose label has the chance of a row's city and brand, both from 0, and the graph of an earlier time."""

    def __init__(self, folder: Path, spec: FeatureSpec, graph: PairGraph, write: Any, chances: Chances) -> None:
        self.out, self.spec = Artifacts(folder), spec
        self.out.encoding.mkdir()
        spec.write(self.out.encoding)
        store(graph, self.out.pair_rates)
        for number, window in enumerate(WINDOWS):
            write(self.out.examples(window), drawn(spec, ROWS[window], number, chances))

    def chosen(self, given: Config) -> PairRatesSummary:
        found = pretrain_job.pretrain(given, self.out, GraphManifest.read(self.out.pair_rates))
        return choose_pair_rates(given, self.out, found)

    @property
    def named(self) -> list[tuple[str, ...]]:
        return [field.parts for field in FeatureSpec.read(self.out.encoding).pair_rates()]


def drawn(spec: FeatureSpec, rows: int, seed: int, chances: Chances) -> dict[str, Any]:
    random, columns = np.random.default_rng(seed), dict[str, Any]()
    for slot in [*spec.block_ids("request"), *spec.block_ids("candidate")]:
        ids = random.integers(FIRST_ID, slot.size, (rows, slot.width)).astype(np.int32)
        columns[slot.name] = ids if slot.width > 1 else ids[:, 0]
    for dense in [*spec.block_dense("request"), *spec.block_dense("candidate")]:
        columns[dense.name] = random.normal(size=rows)
    clicked = random.random(rows) < chances(columns["city"] - FIRST_ID, columns["brand"] - FIRST_ID)
    return columns | {"_label": clicked.astype(float), "_row": np.arange(rows), "_user": np.arange(rows) % 500}


@pytest.fixture
def paying(tmp_path: Path, pair_spec: FeatureSpec, pair_graph: PairGraph, write: Any, pair_rates: np.ndarray) -> Run:
    """What was counted still holds, and few rows tell it to a ranker."""
    return Run(tmp_path, pair_spec, pair_graph, write, lambda city, brand: pair_rates[city, brand])


@pytest.fixture
def bygone(tmp_path: Path, pair_spec: FeatureSpec, pair_graph: PairGraph, write: Any, pair_rates: np.ndarray) -> Run:
    """What was counted holds no more: a city clicks by itself."""
    return Run(tmp_path, pair_spec, pair_graph, write, lambda city, _: np.where(city % 2 == 0, 0.5, 0.2))


@pytest.mark.slow
def test_rates_that_tell_what_training_cannot_are_read(paying: Run) -> None:
    found = paying.chosen(config())
    assert paying.named == [("city", "brand")]
    judged = found.judgement
    assert judged is not None
    assert judged.pays
    assert judged.gain == pytest.approx(judged.auc_with - judged.auc_without)
    assert judged.gain > judged.standard_error > 0
    assert judged.sentence.startswith("Rankers read the pair rates")
    assert found == summary.read(paying.out.pair_rates, PairRatesSummary)


@pytest.mark.slow
def test_rates_of_what_holds_no_more_are_left_out_and_the_sentence_says_so(bygone: Run) -> None:
    found = bygone.chosen(config())
    assert bygone.named == []
    assert FeatureSpec.read(bygone.out.encoding) == bygone.spec
    judged = found.judgement
    assert judged is not None
    assert not judged.pays
    assert judged.sentence.startswith("Pair rates are left out")
    assert "pair_rates.judge = false" in judged.sentence
    assert not found.are_read


@pytest.mark.slow
def test_without_a_judge_they_are_read_unasked(bygone: Run) -> None:
    bygone.chosen(config())
    found = bygone.chosen(config(judge=False))
    assert found.judgement is None
    assert bygone.named == [("city", "brand")]
    assert found == summary.read(bygone.out.pair_rates, PairRatesSummary)


@pytest.mark.slow
def test_a_judgement_is_kept_until_what_it_depends_on_changes(paying: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    first, trained, fit = paying.chosen(config()), list[object](), fitting.fit

    def counted(network: nn.Module, *given: Any, **named: Any) -> FitResult:
        trained.append(network)
        return fit(network, *given, **named)

    monkeypatch.setattr(fitting, "fit", counted)
    paying.spec.write(paying.out.encoding)  # as after `sluice features`
    assert paying.chosen(config()).judgement == first.judgement
    assert paying.named == [("city", "brand")]
    assert not trained
    paying.chosen(config(epochs=2))
    assert len(trained) == 2


@pytest.mark.slow
def test_without_pairs_nothing_is_judged(paying: Run) -> None:
    paying.chosen(config())
    given = config()
    found = choose_pair_rates(given, paying.out, pretrain_job.pretrain(given, paying.out, None))
    assert found.judgement is None
    assert paying.named == []


@pytest.mark.slow
def test_what_they_are_worth_is_the_same_in_both_of_two_processes(
    paying: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one's folder holds no model: what models predicted lies with the first."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    paying.chosen(config())
    for rank in ("0", "1"):
        shutil.copytree(paying.out.out, tmp_path / rank, ignore=shutil.ignore_patterns("0", "1"))
    first, second = train_in_two(config(epochs=1), tmp_path)
    assert first["co_occurrence"] == second["co_occurrence"]
    assert [set(found) for found in first["co_occurrence"].values()] == [{"statistic", "dnn"}]
