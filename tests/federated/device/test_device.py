"""A client on a device: what it imports, and rounds in which it takes part from files and messages alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from contracts.errors import ProtocolError
from federated.clients import client_files, prepare
from federated.device.device import Device
from federated.protocol.round_server import RoundServer
from federated.rounds.client_evaluation import count_scores
from federated.rounds.public_setup import public_setup
from federated.rounds.score_histograms import AT_THE_END
from federated.rounds.settings import HISTOGRAMS
from models.layers.embedding import item_slot
from tests.federated import small_world
from tests.federated.device.small_device import raw_events

ROOT = Path(__file__).parents[3]
FOREIGN = (
    "pyspark", "pysail", "flwr", "typer", "rich", "torch_geometric", "faiss", "mlflow", "sklearn", "scipy", "grpc",
)
ALONE = """
import json, sys
from pathlib import Path
from federated.clients import client_files
from federated.device.device import Device
from federated.device.own_events import keep_events
from federated.privacy.skellam import noise_words

noise_words(100.0, 5)
told = json.loads(sys.stdin.read())
folder = Path(told["folder"])
kept = keep_events(folder, 0, told["events"], told["labels"])
device = Device(folder, "cpp5", 0)
import numpy as np
announced = device.handle("keys", {"round": np.array(5), "clients": np.array(9, np.int32),
                                   "run": np.zeros(32, np.uint8)})
print(json.dumps({"kept": kept, "said": sorted(announced), "modules": sorted({name.split(".")[0]
                                                                              for name in sys.modules})}))
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("device")
    config = small_world.config(clients=6, population=6, neighbours=4, settings=("cpp5", "fedavg"), served="cpp5")
    out = small_world.write(folder / "out")
    prepare.prepare(config, out, folder / "federated")
    return out, folder / "federated"


@pytest.mark.slow
def test_a_device_needs_no_spark_no_flower_and_no_graphs(world):
    out, folder = world
    user = int(client_files.memory(folder, 0).resolve().name, 16)
    events, labels = raw_events(out, user)
    told = json.dumps({"folder": str(folder), "events": events | {"price": events["price"].tolist()},
                       "labels": labels})
    done = subprocess.run([sys.executable, "-c", ALONE], input=told, capture_output=True, text=True, check=False,
                          cwd=ROOT, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"})
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [name for name in FOREIGN if name in found["modules"]] == []
    assert found["kept"] == len(labels)
    assert "signature" in found["said"]


def test_another_run_is_told_items_again_so_that_the_difference_is_whose_left(world):
    """What docs/concepts/federated.md says that no setting hides."""
    _, folder = world
    setup = public_setup(folder, HISTOGRAMS)
    rows, dense = setup.networks.read()
    devices = [Device(folder, HISTOGRAMS, number) for number in range(client_files.count(folder))]

    def exchange(phase, messages):
        for number, message in messages.items():
            yield number, devices[number].handle(phase, message)

    whole, without = (count_scores(setup, exchange, clients, rows, dense, AT_THE_END)[0]
                      for clients in (range(6), range(1, 6)))
    later = client_files.read_client(folder, 0, client_files.LATER)
    slot = item_slot(setup.space.spec)
    assert slot is not None
    own = np.bincount(later.candidate.ids[:, slot.start].numpy(), minlength=len(whole.shown))
    assert own.any()
    assert (whole.shown - without.shown == own).all()


@pytest.mark.slow
def test_devices_that_start_anew_with_each_message_finish_a_round(world):
    """Nothing but the folder is kept between two messages."""
    _, folder = world
    setup = public_setup(folder, "cpp5")
    rows, dense = setup.networks.read()

    def exchange(phase, messages):
        for number, message in messages.items():
            yield number, Device(folder, "cpp5", number).handle(phase, message)

    opened = RoundServer(setup.plan, 6, exchange, rows, dense).run(range(6))
    assert opened.finished == list(range(6))
    assert opened.samples == sum(len(client_files.read_client(folder, number).label) for number in range(6))
    assert np.abs(opened.dense).max() > 0
    with pytest.raises(ProtocolError, match="has done it"):
        list(exchange("train", {0: {"round": np.array(6)}}))


def test_another_run_numbers_its_rounds_anew(world):
    """And the round that a run has had stays done."""
    _, folder = world
    device = Device(folder, "cpp5", 1)

    def keys(number, run):
        return {"round": np.array(number), "clients": np.array(6, np.int32), "run": np.full(32, run, np.uint8)}

    device.handle("keys", keys(60, 1))
    assert "signature" in device.handle("keys", keys(5, 2))
    with pytest.raises(ProtocolError, match="has done it"):
        device.handle("keys", keys(5, 2))


def test_a_device_that_is_wanted_for_something_else_begins_no_round(world):
    _, folder = world
    greeting = {"round": np.array(5), "clients": np.array(6, np.int32), "run": np.full(32, 7, np.uint8)}
    with pytest.raises(ProtocolError, match="takes part in no round now"):
        Device(folder, "cpp5", 2, eligible=lambda: False).handle("keys", greeting)
    assert "signature" in Device(folder, "cpp5", 2).handle("keys", greeting)


def test_a_device_takes_no_part_in_what_has_no_masks(world):
    _, folder = world
    with pytest.raises(ProtocolError, match="has no masks"):
        Device(folder, "fedavg", 0)
    Device(folder, "fedavg", 0, unmasked=True)
