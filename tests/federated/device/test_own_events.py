"""What a device encodes of its events is what the pipelines would have written of them."""

from __future__ import annotations

import pytest
import torch

from contracts.errors import DataError
from contracts.features import vocabulary
from contracts.features.encoding import Encoder
from federated.clients import client_files, prepare
from federated.device.own_events import encoded_events, keep_events
from tests.federated import small_world
from tests.federated.device.small_device import raw_events

CLIENT, MOST = 4, 20


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    folder = tmp_path_factory.mktemp("device")
    out = small_world.write(folder / "out")
    prepare.prepare(small_world.config(max_samples=MOST), out, folder / "federated")
    return out, folder / "federated"


def test_own_events_are_the_rows_that_the_log_has_of_the_user(world):
    out, folder = world
    prepared = client_files.read_client(folder, CLIENT)
    events, labels = raw_events(out, CLIENT + 1)
    assert keep_events(folder, CLIENT, events, labels) == len(prepared.label) == MOST < len(labels)
    kept = client_files.read_client(folder, CLIENT)
    for own, theirs in zip((*kept.request, *kept.candidate, *kept[2:4]), (
            *prepared.request, *prepared.candidate, *prepared[2:4]), strict=True):
        assert own.dtype == theirs.dtype
        assert torch.equal(own, theirs)


def test_a_new_event_and_an_unknown_value_have_their_ids(world):
    _, folder = world
    _, spec = client_files.read_public(folder)
    encoder = Encoder(spec, vocabulary.read_all(client_files.public(folder)))
    events = {"city": ["city-001", "nowhere"], "item": ["item-003", None], "genre": ["genre-000"] * 2,
              "history": [["item-001"], []], "price": [2.5, None]}
    batch = encoded_events(encoder, events, [1.0, 0.0], [3, 1])
    assert batch.label.tolist() == [1.0, 0.0]
    assert batch.position.tolist() == [3, 1]
    assert batch.candidate.ids[0].tolist() != batch.candidate.ids[1].tolist()
    assert torch.isfinite(batch.candidate.dense).all()


@pytest.mark.parametrize(("events", "wrong"), [({"city": ["city-001"]}, "2 labels"), ({"city": ["a", "b"]}, "history")])
def test_events_that_lack_something_are_refused(world, events, wrong):
    _, folder = world
    with pytest.raises(DataError, match=wrong):
        keep_events(folder, CLIENT, events, [1.0, 0.0])
