"""A client is made of its own files."""

from __future__ import annotations

import pickle

import pytest
import torch

from federated.clients import client_files, prepare
from federated.device.own_client import OwnClients, client_of
from federated.rounds.public_setup import public_setup
from federated.rounds.score_histograms import HistogramTrainer
from federated.rounds.settings import HISTOGRAMS, SCORES
from tests.federated import small_world


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    world = tmp_path_factory.mktemp("own")
    config = small_world.config(settings=("cpp2", "fedlaavg"))
    prepare.prepare(config, small_world.write(world / "out"), world / "federated")
    return world / "federated"


def test_a_client_is_made_of_its_own_files(folder):
    client = client_of(public_setup(folder, "cpp2"), folder, 3)
    assert client.trainer.samples() == len(client_files.read_client(folder, 3).label)
    assert client.gradients is None
    assert client_of(public_setup(folder, "fedlaavg"), folder, 3).gradients is not None


@pytest.mark.parametrize("counts", [SCORES, HISTOGRAMS])
def test_a_client_that_counts_has_later_rows(folder, counts):
    counting = client_of(public_setup(folder, counts), folder, 3)
    assert isinstance(counting.trainer, HistogramTrainer)
    assert counting.trainer.of_items == (counts == HISTOGRAMS)
    assert counting.trainer.samples() == len(client_files.read_client(folder, 3, client_files.LATER).label)


def test_who_plays_them_all_reads_each_once_and_the_next_reads_anew(folder):
    """Rows may have come in between, and another configuration."""
    first, rows = OwnClients(), client_files.read_client(folder, 5)
    before = first.of(folder, "cpp2", 5)
    client_files.write_client(folder, 5, rows.take(torch.arange(2)))
    assert first.of(folder, "cpp2", 5) is before
    assert OwnClients().of(folder, "cpp2", 5).trainer.samples() == 2 < before.trainer.samples()
    client_files.write_client(folder, 5, rows)


def test_copies_that_come_to_a_process_are_one_and_those_of_another_run_are_not():
    """Flower's simulation sends the app to its processes with each message."""
    first, second = OwnClients(), OwnClients()
    there = pickle.loads(pickle.dumps(first))
    assert pickle.loads(pickle.dumps(first)) is there
    assert pickle.loads(pickle.dumps(there)) is there
    assert pickle.loads(pickle.dumps(second)) is not there
