"""Several processes train one model: its table in shares, every batch in shares, and the result that of one process."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from contracts.bundle.bundle import load_weights
from contracts.config.training import Train
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import ExampleSet
from models.jobs.retrieval_training import build_towers
from models.layers.losses import RetrievalLoss
from models.training import fitting
from models.training.loop import Loop

LOSS_TOLERANCE, WEIGHT_TOLERANCE = 1e-4, 5e-3  # float32 sums in another order, some hundred updates of Adam


Learned = tuple[list[list[float]], dict[str, np.ndarray]]  # losses and weights


class Towers(NamedTuple):
    """Of one process: what it learned; by the number of processes, the loss and the number of the clicks of a batch's
    rows that are process 0's, against all of its items."""

    learned: Learned
    few: dict[int, tuple[float, int]]


@pytest.fixture(scope="session")
def towers(item_world: Any, spec: FeatureSpec, exact_settings: Train) -> Towers:
    torch.manual_seed(1)
    fresh = build_towers(spec, exact_settings)
    batch, few = next(item_world.train.batches(201)), {}
    for count in (2, 3, 4):
        mine = torch.where(torch.arange(201) % count == 0, batch.label, 0.0)
        with torch.no_grad():
            total, terms = RetrievalLoss(fresh)(batch._replace(label=mine))
        few[count] = float(total), terms
    train, validation = (ExampleSet(part.folder, spec) for part in (item_world.train, item_world.validation))
    result = fitting.fit_towers(fresh, train, validation, exact_settings, 1)
    losses = [[epoch.train_loss, epoch.validation_loss] for epoch in result.history]
    return Towers((losses, {name: tensor.numpy() for name, tensor in fresh.state_dict().items()}), few)


def check(folder: Path, count: int, alone: Learned, towers: Towers) -> None:
    for rank in range(count):
        found = json.loads((folder / f"losses{rank}of{count}.json").read_text())
        alike(found, load_weights(folder / f"dnn{rank}of{count}.safetensors"), alone)
        said = json.loads((folder / f"fitted_towers{rank}of{count}.json").read_text())
        alike(said["losses"], load_weights(folder / f"fitted_towers{rank}of{count}.safetensors"), towers.learned)
        assert said["total"] == pytest.approx(towers.few[count], rel=1e-5)
        assert said["reached"] > 0, "no click of another process reached its items"


def alike(losses: list[list[float]], weights: dict[str, np.ndarray], alone: Learned) -> None:
    np.testing.assert_allclose(losses, alone[0], rtol=0, atol=LOSS_TOLERANCE)
    for name, tensor in alone[1].items():
        np.testing.assert_allclose(weights[name], tensor, rtol=0, atol=WEIGHT_TOLERANCE, err_msg=name)


@pytest.mark.slow
def test_two_processes_learn_what_one_does(of_two: Path, alone: Learned, towers: Towers) -> None:
    check(of_two, 2, alone, towers)


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, 4])
def test_more_processes_learn_what_one_does(in_processes: Any, count: int, alone: Learned, towers: Towers) -> None:
    check(in_processes(count), count, alone, towers)


@pytest.fixture(scope="module")
def products_alone(item_world: Any, spec: FeatureSpec, exact_settings: Train, tmp_path_factory: Any) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("products")
    runpy.run_path(str(Path(__file__).with_name("worker.py")))["products"](
        folder, spec, exact_settings, ExampleSet(item_world.train.folder, spec))
    return load_weights(folder / "products0of1.safetensors")


@pytest.mark.slow
def test_factors_of_products_are_dealt_as_well(of_two: Path, products_alone: dict[str, Any]) -> None:
    for rank in (0, 1):
        theirs = load_weights(of_two / f"products{rank}of2.safetensors")
        assert theirs.keys() == products_alone.keys()
        for name, tensor in products_alone.items():
            np.testing.assert_allclose(theirs[name], tensor, rtol=0, atol=1e-4, err_msg=name)


@pytest.mark.slow
def test_bytes_are_those_of_the_arithmetic(of_two: Path) -> None:
    """Per distinct row that another process owns 4 bytes of its number and two vectors; per table and update a count
    for each other process; of replicated numbers, a word for each of their tensors, loss, terms, wish and norm by a
    ring."""
    said = [json.loads((of_two / f"products{rank}of2.json").read_text()) for rank in (0, 1)]
    rows = sum(asked * (4 + 8 * width) for each in said
               for asked, width in zip(each["asked"], each["widths"], strict=True))
    ring = sum(each["updates"] * 4 * (sum(each["dense"]) + 4) for each in said)
    counts = sum(each["updates"] * 2 * 8 for each in said)
    assert rows > 10_000
    assert sum(each["sent"] for each in said) == rows + ring + counts


@pytest.mark.slow
def test_a_process_without_a_click_neither_hangs_nor_counts(
    of_two: Path, item_world: Any, spec: FeatureSpec, exact_settings: Train
) -> None:
    """The update is that of the other process's batch alone, in both."""
    torch.manual_seed(1)
    towers = build_towers(spec, exact_settings)
    loop = Loop(RetrievalLoss(towers), [towers], exact_settings, 1, 1)
    value, terms = loop.step(next(item_world.train.batches(200)))
    for rank in (0, 1):
        found = json.loads((of_two / f"towers{rank}.json").read_text())
        assert found == [pytest.approx(float(value), rel=1e-5), terms]
        theirs = load_weights(of_two / f"towers{rank}.safetensors")
        for name, tensor in towers.state_dict().items():
            np.testing.assert_allclose(theirs[name], tensor.numpy(), rtol=0, atol=1e-5, err_msg=name)
