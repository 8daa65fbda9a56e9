from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from contracts.config.training import Train
from contracts.features.feature_spec import UNKNOWN, FeatureSpec
from models.compiled import kernels
from models.examples.batches import Batch, ExampleSet
from models.networks import registry
from models.training import fitting
from models.training.unknown_ids import FLOOR, UnknownIds, dropped_shares


@pytest.fixture(scope="module")
def windows(columns: Any, write: Any, spec: FeatureSpec, tmp_path_factory: pytest.TempPathFactory) -> list[ExampleSet]:
    """In the validation window 60% of the users are new, and their crosses with them."""
    folder, sets = tmp_path_factory.mktemp("windows"), []
    for number, window in enumerate(("train", "validation")):
        drawn = columns(spec, 4000, number)
        drawn["_label"] = np.random.default_rng(70 + number).integers(0, 2, 4000).astype(np.float64)
        if window == "validation":
            new = np.arange(4000) % 10 < 6
            drawn["user"][new] = drawn["both"][new] = UNKNOWN
        sets.append(ExampleSet(write(Path(folder / window), drawn), spec))
    return sets


def whole(examples: ExampleSet) -> Batch:
    return next(examples.batches(examples.rows))


def test_training_sees_a_slot_unknown_as_often_as_validation_does(windows: Any, spec: FeatureSpec) -> None:
    torch.manual_seed(0)
    shares = dropped_shares(spec, *windows)
    change, batch = UnknownIds(spec, shares), whole(windows[0])
    assert shares["user"] == pytest.approx(0.6, abs=0.01)
    assert shares["item"] == pytest.approx(FLOOR)
    changed = change(batch)
    user = next(slot for slot in spec.block_ids("request") if slot.name == "user")
    both = next(slot for slot in spec.block_ids("candidate") if slot.name == "both")
    gone = changed.request.ids[:, user.start] == UNKNOWN
    assert gone.float().mean() == pytest.approx(0.6, abs=0.03)
    assert (gone == (changed.candidate.ids[:, both.start] == UNKNOWN)).float().mean() > 0.98  # missing together


def test_without_a_compiler_the_same_ids_are_dropped(
    windows: Any, spec: FeatureSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernels.library() is None:
        pytest.skip("no C++ compiler on this machine")
    change, batch, found = UnknownIds(spec, dropped_shares(spec, *windows)), whole(windows[0]), []
    for _ in range(2):
        torch.manual_seed(1)
        found.append(change(batch))
        monkeypatch.setattr(kernels, "library", lambda: None)
    assert torch.equal(found[0].request.ids, found[1].request.ids)
    assert torch.equal(found[0].candidate.ids, found[1].candidate.ids)


def test_lists_numbers_and_what_is_kept_stay_as_they_are(windows: Any, spec: FeatureSpec) -> None:
    change, batch = UnknownIds(spec, dropped_shares(spec, *windows)), whole(windows[0])
    before = batch.map(torch.clone)
    changed = change(batch)
    assert torch.equal(batch.request.ids, before.request.ids)
    history = next(slot for slot in spec.block_ids("request") if slot.name == "history")
    span = slice(history.start, history.start + history.width)
    assert torch.equal(changed.request.ids[:, span], before.request.ids[:, span])
    assert torch.equal(changed.candidate.dense, before.candidate.dense)
    moved = changed.request.ids != before.request.ids
    assert (changed.request.ids[moved] == UNKNOWN).all()


def test_what_is_unknown_in_training_already_is_not_dropped_on_top(windows: Any, spec: FeatureSpec) -> None:
    train, validation = windows
    assert dropped_shares(spec, validation, validation)["user"] == 0.0
    assert dropped_shares(spec, validation, train)["user"] == 0.0


def test_where_all_users_are_new_a_network_ranks_as_well_as_popularity(
    columns: Any, write: Any, spec: FeatureSpec, settings: Train, auc: Any, tmp_path: Path
) -> None:
    """Training teaches tastes of users whom nobody meets again; what is left to know is the item."""
    random = np.random.default_rng(6)
    of_user, of_item = random.normal(0, 2, 70), random.normal(0, 1, 70)
    sets = []
    for number, window in enumerate(("train", "validation")):
        drawn = columns(spec, 5000, 30 + number)
        logit = of_user[drawn["user"]] + of_item[drawn["item"]]
        drawn["_label"] = (random.random(5000) < 1 / (1 + np.exp(-logit))).astype(np.float64)
        if window == "validation":
            drawn["user"][:] = drawn["both"][:] = UNKNOWN
        sets.append(ExampleSet(write(tmp_path / window, drawn), spec))
    reached = {}
    for name in ("popularity", "dnn"):
        torch.manual_seed(1)
        network = registry.build(name, spec, settings)
        fitting.fit(network, sets[0], sets[1], settings, seed=1)
        reached[name] = auc(sets[1].column("_label"), fitting.predict(network, sets[1]))
    assert reached["dnn"] > reached["popularity"] - 0.01
    assert reached["popularity"] > 0.6
