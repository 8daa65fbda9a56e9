"""The choice and its comparison on requests with a known answer; the test window decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from contracts.artifacts import CALIBRATION, LABEL, POSITION, TEST_LOGITS, TEST_ROWS, WEIGHTS, Artifacts
from contracts.bundle.bundle import load_weights, save_array, save_weights
from contracts.config.config import Config, parse
from models.evaluation.calibration import Calibration
from models.examples.batches import ExampleSet
from models.networks.two_tower import TwoTower
from models.preranking.fscd import Fscd
from models.preranking.job import Outcome, make_task, train_pre_ranker
from models.training import checkpoint, fitting
from tests.models import prerank_market

ROWS = 300
CONFIG = """
name = "lists"
log = { path = "p", item_id = "i", event_time = "t" }
label = { expression = "y" }
train = { embedding_dim = 4, tower_dim = 4, tower_hidden = [8] }
retrieve = { candidates = 60, two_tower = 60 }
serve = { max_limit = 10 }
fields = [{ name = "taste", kind = "categorical", side = "user" }]
[prerank]
keep = 10
recall_at = 5
hidden = [32]
embedding_dim = 4
list_length = 32
batch_size = 512
warm_steps = 40
sweep_steps = 30
tune_steps = 30
final_steps = 30
learning_rate = 1e-2
penalties = [0.12, 0.48]
"""


@pytest.fixture(scope="module")
def config() -> Config:
    return parse(CONFIG)


def written(config: Config, found: Artifacts, rows: int = ROWS, bias: Sequence[float] = ()) -> Artifacts:
    """Candidates of three windows, examples, two towers, and a ranker "dnn" with its logits of the test window."""
    spec = prerank_market.spec(len(bias))
    job = prerank_market.task()
    items = job.sources.items
    items.save(found.candidates)
    for seed, window in enumerate(("train", "validation", "test")):
        prerank_market.lists(items.ids, 60, seed).save(found.candidates / window)
        prerank_market.write_impressions(found.examples(window), rows, seed, bias)
    torch.manual_seed(0)
    train = config.train
    towers = TwoTower(spec, train.embedding_dim, train.tower_hidden, train.tower_dim, train.dropout, train.temperature)
    checkpoint.save(towers, found.model("two_tower") / WEIGHTS)
    curve = Calibration(np.zeros(1), np.zeros(1), 1.0)
    for model in ("two_tower", "dnn"):
        save_weights(found.model(model) / CALIBRATION, curve.arrays())
    save_array(found.model("dnn") / TEST_LOGITS, np.random.default_rng(0).normal(size=rows))
    save_array(found.model("dnn") / TEST_ROWS, np.arange(rows)[::-1].copy())
    return found


@pytest.fixture(scope="module")
def out(config: Config, tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    return written(config, Artifacts(tmp_path_factory.mktemp("lists")))


def chosen(config: Config, out: Artifacts, positions: int = 0) -> Outcome:
    task = make_task(config, out, prerank_market.spec(positions), None, 3, lambda what, done, total: None)
    return train_pre_ranker(replace(task, costs=prerank_market.COSTS), config, out, "dnn")


@pytest.fixture(scope="module")
def outcome(config: Config, out: Artifacts) -> Outcome:
    return chosen(config, out)


def test_one_point_is_chosen_and_the_others_are_on_the_frontier(outcome: Outcome) -> None:
    figures = outcome.figures
    (point,) = (point for point in figures.frontier if point.chosen)
    assert point.kept == figures.kept
    assert (point.cost, point.price) == (figures.cost, figures.price)
    assert figures.frontier[0].fields_kept == figures.fields_all == len(prerank_market.COSTS)
    assert [one.kept for one in figures.frontier] == [tuple(one.kept) for one in outcome.points]


def test_every_field_is_kept_or_dropped_with_a_sentence(outcome: Outcome) -> None:
    figures = outcome.figures
    assert sorted([*figures.kept, *(field.field for field in figures.dropped)]) == sorted(prerank_market.COSTS)
    assert figures.words == tuple(field.sentence for field in figures.dropped)


def test_the_ranker_on_everything_is_its_own_ceiling(outcome: Outcome) -> None:
    assert outcome.figures.full_ranker.recall == 1.0
    assert outcome.figures.fscd.recall > outcome.figures.dot_product.recall


def test_the_weights_written_are_those_of_the_chosen_network(outcome: Outcome, out: Artifacts, config: Config) -> None:
    again = Fscd(prerank_market.spec(), config.prerank.embedding_dim, config.prerank.hidden)
    checkpoint.load(again, out.model("fscd") / WEIGHTS)
    written, kept = again.state_dict(), outcome.network.state_dict()
    assert all(torch.equal(written[name], kept[name]) for name in kept)
    assert (out.model("fscd") / CALIBRATION).exists()


@pytest.mark.slow
def test_the_test_window_chooses_nothing(outcome: Outcome, out: Artifacts, config: Config) -> None:
    lists = prerank_market.lists(prerank_market.task().sources.items.ids, 60, 2)
    replace(lists, teacher=-lists.teacher).save(out.candidates / "test")
    try:
        other = chosen(config, out)
    finally:
        lists.save(out.candidates / "test")
    assert other.figures.kept == outcome.figures.kept
    assert other.figures.frontier == outcome.figures.frontier
    assert other.figures.fscd.recall != outcome.figures.fscd.recall


@pytest.mark.parametrize("click_loss_weight", [1.0, 0.0])
def test_probabilities_are_those_of_the_first_slot(click_loss_weight: float, config: Config, tmp_path: Path) -> None:
    bias = (0.0, -0.7, -1.4, -2.0)
    prerank = config.prerank.model_copy(update={"click_loss_weight": click_loss_weight, "penalties": (0.12,)})
    config = config.model_copy(update={"prerank": prerank})
    out = written(config, Artifacts(tmp_path), 8000, bias)
    network = chosen(config, out, len(bias)).network
    validation = ExampleSet(out.examples("validation"), prerank_market.spec(len(bias)))
    first, clicked = validation.column(POSITION) == 1, validation.column(LABEL)
    curve = Calibration.from_arrays(load_weights(out.model("fscd") / CALIBRATION))
    told = curve.apply(fitting.predict(network, validation))
    assert told[first].mean() == pytest.approx(clicked[first].mean(), abs=0.02)
    assert clicked.mean() < clicked[first].mean() - 0.05
