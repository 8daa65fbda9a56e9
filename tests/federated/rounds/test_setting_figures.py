"""Figures of a setting from rounds that are known."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pytest

from contracts.config.federated import Federated
from contracts.summaries.federated import BothWays, RoundFigures
from federated.clients import prepare
from federated.clients.row_space import RowSpace
from federated.privacy import skellam
from federated.protocol.messages import PHASES
from federated.rounds.setting_figures import (
    figures_of,
    noise_epsilon,
    privacy_of,
    round_line,
    rows_held,
    side_by_side,
    warnings_of,
)
from federated.rounds.training import FederatedRun
from tests.federated import small_world
from tests.federated.small_rounds import DENSE, SPACE, WIDTH, plan


def entry(number, **changes):
    return RoundFigures(**{
        "round": number, "clients": 9, "loss": 0.5, "kept": 0.75, "union": 12, "declared": 30.0, "lost": {},
        "seconds_per_phase": dict.fromkeys(PHASES, 0.25), "abandoned": 0,
        "bytes": {"train": BothWays(up=100.0, down=50.0)}, "waited": 0, "seconds": 2.0, **changes})


def training(of, folder, history):
    return FederatedRun(
        plan=of, exchange=lambda phase, messages: {}, population=9, folder=folder, seed=1,
        rows=np.zeros((SPACE, WIDTH)), dense=np.zeros(DENSE), history=history)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    folder, config = tmp_path_factory.mktemp("prepared"), small_world.config()
    prepare.prepare(config, small_world.write(folder / "out"), folder / "federated")
    return config, folder / "federated"


def test_quality_is_that_of_the_best_round_and_costs_are_those_of_all(prepared):
    config, folder = prepared
    history = [
        entry(1, auc=0.6, auc_validation=0.7, lost={"train": 2}, abandoned=1, kept=0.5),
        entry(2, auc=0.5, auc_validation=0.8, lost={"train": 1, "keys": 3}, seconds=4.0, kept=None,
              bytes={"train": BothWays(up=200.0, down=50.0)}),
        entry(3, auc=0.9, auc_validation=0.75),
    ]
    figures = figures_of(training(plan("per_row", "cpp2"), folder, history), config, folder)
    assert (figures.best_round, figures.auc, figures.auc_validation, figures.rounds) == (2, 0.5, 0.8, 3)
    assert figures.dropouts == {"train": 3, "keys": 3}
    assert figures.abandoned == 1
    assert figures.seconds_per_round == pytest.approx(8 / 3)
    assert figures.kept == pytest.approx((0.5 + 0.75) / 2)
    assert figures.bytes_per_client_round == pytest.approx(400 / 3 + 50)
    assert figures.bytes_by_formula == pytest.approx(
        sum(up + down for up, down in figures.bytes_by_formula_per_phase.values()))
    assert figures.epsilon is not None
    assert figures.epsilon_composed == pytest.approx(figures.epsilon * figures.held)


@pytest.mark.parametrize(("masking", "policy", "epsilon"), [
    ("per_row", "cpp1", None), ("union", "cpp5", 0.0), ("none", "all", None)])
def test_nothing_bounds_what_true_answers_or_open_updates_say(prepared, masking, policy, epsilon):
    config, folder = prepared
    figures = figures_of(training(plan(masking, policy), folder, [entry(1)]), config, folder)
    assert figures.epsilon == epsilon
    assert figures.epsilon_composed == epsilon


def test_the_default_round_ties_less_than_one_row_in_a_hundred_to_its_only_holder(prepared):
    config, folder = prepared
    default = Federated()
    history = [entry(1, clients=default.clients)]
    figures = figures_of(training(plan("per_row", "cpp2"), folder, history), config, folder)
    assert figures.single_holder_seen == pytest.approx(0.0025, abs=1e-4)
    half = training(plan("per_row", "cpp2"), folder, [entry(1, clients=20)])
    assert figures_of(half, config, folder).single_holder_seen == pytest.approx(0.083, abs=1e-3)
    assert figures_of(training(plan("union", "cpp5"), folder, history), config, folder).single_holder_seen == 0.0
    assert figures_of(training(plan("none", "all"), folder, history), config, folder).single_holder_seen is None


def test_a_population_too_small_to_hide_a_rows_only_holder_is_said_with_its_cure(prepared):
    config, folder = prepared
    said = {}
    for clients in (20, 36, 37, 48):
        made = figures_of(training(plan("per_row", "cpp2"), folder, [entry(1, clients=clients), entry(2, clients=99)]),
                          config, folder)
        together = side_by_side(config, {"cpp2": made})
        assert together.single_holder_seen == {"cpp2": made.single_holder_seen}
        assert together.proven == {"cpp2": None}
        said[clients] = together.warnings
    assert not said[37]
    assert not said[48]
    assert "of 20 clients" in said[20][0]
    assert "odds of 8.3%" in said[20][0]
    assert "with 37 clients" in said[36][0]
    assert "no number of clients hides it" in warnings_of("cpp1", 1.0, 48)[0]
    assert warnings_of("fedavg", None, 3) == warnings_of("cpp5", 0.0, 3) == ()


def test_what_a_server_alone_can_say_is_what_the_figures_say(prepared):
    config, folder = prepared
    run = training(plan("per_row", "cpp2"), folder, [entry(1)])
    figures = figures_of(run, config, folder)
    for name, value in asdict(privacy_of(run, config.federated.delta)).items():
        assert getattr(figures, name) == value


def test_rows_held_are_those_that_a_mean_client_uses(prepared):
    config, folder = prepared
    spec = prepare.federated_spec(config, small_world.spec())
    everything_public = RowSpace(spec, 1000)
    assert rows_held(everything_public, folder) == 0.0
    assert 1.0 < rows_held(RowSpace(spec, config.federated.public_up_to), folder) <= small_world.ITEMS + 1


def test_central_training_sends_nothing_that_could_be_counted(prepared):
    config, folder = prepared
    made = figures_of(training(plan("none", "all"), folder, [entry(1, lost={"keys": 2})]), config, folder)
    together = side_by_side(config, {"cpp2": made, "central": made})
    assert together.auc.keys() == together.kept.keys() == {"cpp2", "central"}
    assert together.bytes_per_client_round.keys() == together.epsilon.keys() == {"cpp2"}
    assert together.dropouts == 2


def test_epsilon_of_the_noise_is_that_of_all_rounds_with_the_smallest_one(tmp_path):
    of = plan("union", "cpp5", rule="plain", noise=1e6, noise_norm=2000.0)
    history = [entry(number, clients=clients) for number, clients in enumerate((9, 6, 8), start=1)]
    words = DENSE + 4 + SPACE * (WIDTH + 1)
    expected = skellam.epsilon(5 * 1e6, 2000.0, 2000.0 * words**0.5, 3, 1e-6)
    assert noise_epsilon(training(of, tmp_path, history), 1e-6) == pytest.approx(expected)
    assert noise_epsilon(training(plan("union", "cpp5"), tmp_path, history), 1e-6) is None
    history[1] = entry(2, clients=6, abandoned=3, abandoned_uploads=(2, 5, 9))  # that of two clients no client opens
    more = skellam.epsilon(4 * 1e6, 2000.0, 2000.0 * words**0.5, 5, 1e-6)
    assert noise_epsilon(training(of, tmp_path, history), 1e-6) == pytest.approx(more)


@pytest.mark.parametrize(("clients", "epsilon"), [(20, 15_800), (200, 161), (2000, 6.0), (20_000, 0.47)])
def test_what_a_hundred_rounds_cost_is_what_the_documentation_says(clients, epsilon):
    """docs/concepts/federated.md: noise of the mean of 60 thousand words, as long as the longest update, delta 1e-5."""
    words, norm = 60_000, 2000.0
    variance = norm**2 * clients / words
    found = skellam.epsilon((clients - 1) * variance, norm, norm * words**0.5, 100, 1e-5)
    assert found == pytest.approx(epsilon, rel=0.01)


def test_a_line_says_what_is_known_of_a_round():
    assert round_line(entry(4, auc_validation=0.61)) == "round 4, loss 0.5000, auc 0.6100"
    assert round_line(entry(4, loss=None)) == "round 4"
    assert round_line(entry(4, loss=None, left_out=(3, 7))).endswith("sums with them were none: [3, 7]")
