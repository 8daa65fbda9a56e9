"""Server and clients make the same of the public files, each for itself."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import ConfigError, DataError
from federated.clients import client_files, prepare
from federated.rounds.public_setup import public_setup
from federated.rounds.settings import HISTOGRAMS
from tests.federated import small_world


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepared")
    config = small_world.config(settings=("cpp2", "fedavg"))
    prepare.prepare(config, small_world.write(folder / "out"), folder / "federated")
    return folder / "federated"


def test_two_that_read_the_same_files_have_the_same_weights_and_plan(folder):
    here, there = public_setup(folder, "cpp2"), public_setup(folder, "cpp2")
    for left, right in zip(here.networks.read(), there.networks.read(), strict=True):
        assert (left == right).all()
    assert here.plan.fingerprint == there.plan.fingerprint
    assert np.abs(here.networks.read()[1]).max() > 0


def test_the_plan_is_that_of_the_space_and_of_the_networks(folder):
    setup = public_setup(folder, "cpp2")
    rows, dense = setup.networks.read()
    assert (setup.plan.space, setup.plan.width) == rows.shape
    assert setup.plan.dense == dense.size
    assert (setup.plan.private_places == setup.space.private_places).all()
    assert setup.plan.identities == client_files.identities(folder)


def test_a_round_of_counting_is_of_the_whole_population_and_has_no_rows(folder):
    plan = public_setup(folder, HISTOGRAMS).plan
    assert plan.space == 0
    assert plan.masked
    assert plan.clients == client_files.count(folder)


def test_a_configuration_in_place_of_the_prepared_one_is_taken(folder):
    other = small_world.config(settings=("cpp2",), min_clients=5)
    assert public_setup(folder, "cpp2", other).plan.min_clients == 5
    with pytest.raises(ConfigError, match="not among"):
        public_setup(folder, "fedavg", other)


def test_a_folder_in_which_nothing_was_prepared_is_refused(tmp_path):
    with pytest.raises(DataError, match="prepares the folder"):
        public_setup(tmp_path, "cpp2")
