"""A client is made of its own files."""

from __future__ import annotations

from federated.clients import client_files, prepare
from federated.device.own_client import client_of
from federated.rounds.score_histograms import HistogramTrainer
from federated.rounds.settings import HISTOGRAMS
from tests.federated import small_world


def test_a_client_is_made_of_its_own_files_once(tmp_path):
    folder = tmp_path / "federated"
    prepare.prepare(small_world.config(settings=("cpp2", "fedlaavg")), small_world.write(tmp_path / "out"), folder)
    client = client_of(folder, "cpp2", 3)
    assert client is client_of(folder, "cpp2", 3)
    assert client.trainer.samples() == len(client_files.read_client(folder, 3).label)
    assert client.gradients is None
    assert client_of(folder, "fedlaavg", 3).gradients is not None
    counting = client_of(folder, HISTOGRAMS, 3)
    assert isinstance(counting.trainer, HistogramTrainer)
    assert counting.trainer.samples() == len(client_files.read_client(folder, 3, client_files.LATER).label)
