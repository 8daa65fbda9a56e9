"""Every set of crosses is compared on the same rows, and the planted one wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.artifacts import Artifacts
from contracts.config.config import Config, parse
from contracts.summaries.crosses import CrossComparison, RepresentationFigures, SearchEpoch
from models.cross_search import comparison as module
from models.cross_search.columns import CrossColumns
from models.cross_search.comparison import REPRESENTATIONS, Sampled, baseline_sets, compare_variants, rivals
from models.cross_search.outcome import SearchOutcome, SearchSpace
from models.cross_search.pruning import Selected, folds_of
from models.distributed.kept_parts import KeptParts
from models.examples.batches import ExampleSet
from tests.heard_progress import Said, counts, heard, names
from tests.models.crossed_world import FIELDS, crossed_columns, crossed_spec, parity_logit, write_examples

PLANTED, SPEC = frozenset({0, 4}), crossed_spec().model_copy(update={"has_users": True})
CONFIG = """
name = "crossed"
log = { path = "x", event_time = "t" }
label = { expression = "y" }
train = { embedding_dim = 4, hidden = [8], batch_size = 256, epochs = 1 }
crosses = { compare_rows = 1500, min_count = 1, budget = 4 }
fields = [{ name = "f0", kind = "categorical", side = "user" }]
"""


def config(**crosses: object) -> Config:
    plain = parse(CONFIG)
    return plain.model_copy(update={"crosses": plain.crosses.model_copy(update=crosses)})


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    found = Artifacts(tmp_path_factory.mktemp("crossed"))
    for seed, window in enumerate(("train", "validation", "test")):
        write_examples(found.examples(window), columns(seed), days=2)
    return found


def columns(seed: int) -> CrossColumns:
    return crossed_columns(parity_logit(*PLANTED), rows=1500, seed=seed)


def outcome() -> SearchOutcome:
    read = columns(0)
    return SearchOutcome(
        columns=read, folds=folds_of(None, read.rows, 0), allowed=~np.eye(FIELDS, dtype=bool), adjacency=[],
        proposals={PLANTED: 1.0}, selected=[Selected(PLANTED, gain=100.0, ridge=5.0, support=16)], min_count=1,
        representation="embedding", history=(SearchEpoch(epoch=1, fit_loss=0.5, holdout_loss=0.5, seconds=0.1),),
        rows_per_second=1.0, seconds={},
    )


@pytest.fixture(scope="module")
def compared(out: Artifacts) -> tuple[CrossComparison, Said]:
    """The comparison, and what it reported."""
    with heard() as said:
        found = compare_variants(config(), out, SPEC, outcome(), seed=1)
    assert found is not None
    return found, said


@pytest.fixture(scope="module")
def comparison(compared: tuple[CrossComparison, Said]) -> CrossComparison:
    return compared[0]


def test_sets_batches_and_trees_are_counted(compared: tuple[CrossComparison, Said]) -> None:
    said = compared[1]
    plain, *kinds = (f"network, crosses as {kind}" for kind in REPRESENTATIONS)
    assert names(said) == ["baselines", "gains of crosses", "logistic regressions", plain, "lightgbm",
                           "logistic regression with the crosses found", *kinds]
    assert counts(said, "logistic regressions") == [(done, 4) for done in range(5)]
    for kind in REPRESENTATIONS:
        told = counts(said, f"network, crosses as {kind}")
        assert told == sorted(set(told))
        assert told[0][0] == 1


def test_every_baseline_is_there_with_its_gain_over_none(comparison: CrossComparison) -> None:
    assert set(comparison.variants) == {
        "none", "fives", "random", "information", "taylor", "exhaustive", "all_pairs_hashed"}
    assert comparison.variants["none"].gain is None
    assert all(variant.gain is not None for name, variant in comparison.variants.items() if name != "none")


def test_the_planted_cross_wins_and_none_know_nothing(comparison: CrossComparison) -> None:
    none, fives = comparison.variants["none"], comparison.variants["fives"]
    assert fives.gain_low is not None
    assert fives.gain_low > 0.1
    assert abs(none.auc - 0.5) < 0.1
    assert fives.auc > none.auc + 0.1


def test_representations_and_the_reference_are_on_the_same_rows(comparison: CrossComparison) -> None:
    weights = {name: figures.weights for name, figures in comparison.representations.items()}
    assert weights["embedding"] > weights["none"]
    assert set(weights) == {"none", "embedding", "product"}
    assert comparison.compare_rows == 1500
    assert comparison.lightgbm is not None
    assert comparison.lightgbm.auc > 0.6


def test_baselines_keep_to_the_budget_and_to_allowed_pairs(out: Artifacts) -> None:
    search = outcome()
    sets = baseline_sets(config(budget=2), search, ExampleSet(out.examples("train"), SPEC), seed=1)
    for name, crosses in sets.items():
        assert len(crosses) <= 2, name
        assert all(search.allowed[tuple(sorted(cross))] for cross in crosses), name
    assert PLANTED in sets["exhaustive"]


def test_without_rows_there_is_no_comparison(out: Artifacts) -> None:
    assert compare_variants(config(compare_rows=0), out, SPEC, outcome(), seed=1) is None


def test_rivals_that_were_made_before_the_search_was_over_are_taken_up(
    comparison: CrossComparison, out: Artifacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison then fits what has the search's crosses, and nothing else, to the same figures."""
    found = outcome()
    space = SearchSpace(columns=found.columns, folds=found.folds, allowed=found.allowed)
    sampled = Sampled.read(config(), out, SPEC, 1)
    rivals(config(), out, SPEC, space, sampled, 1, KeptParts(tmp_path / "kept", 60.0, {"run": "1"}))
    for name in ("logistic_variants", "boosted"):
        monkeypatch.setattr(module, name, None)
    again = KeptParts(tmp_path / "kept", 60.0, {"run": "1"}, resume=True)
    assert compare_variants(config(), out, SPEC, found, 1, again) == comparison


def test_a_comparison_that_was_stopped_finds_what_it_has_finished(
    comparison: CrossComparison, out: Artifacts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And trains the network that it was at, and those after it, to the same figures."""
    real, begun = module.representation, []

    def stopped_at_embedding(kind: str, *rest: Any) -> RepresentationFigures:
        begun.append(kind)
        if kind == "embedding" and begun.count(kind) == 1:
            raise InterruptedError
        return real(kind, *rest)

    monkeypatch.setattr(module, "representation", stopped_at_embedding)
    with pytest.raises(InterruptedError):
        compare_variants(config(), out, SPEC, outcome(), 1, KeptParts(tmp_path / "kept", 60.0, {"run": "1"}))
    monkeypatch.setattr(module, "logistic_variants", None)
    again = KeptParts(tmp_path / "kept", 60.0, {"run": "1"}, resume=True)
    assert compare_variants(config(), out, SPEC, outcome(), 1, again) == comparison
    assert begun == ["none", "embedding", "embedding", "product"]
