from __future__ import annotations

import pytest
import torch

from contracts.features.encoding import Encoder
from contracts.features.vocabulary import Vocabulary
from models.examples.nobody import Nobody
from models.networks.two_tower import TwoTower
from models.training import fitting


def test_nobody_is_what_an_encoder_with_vocabularies_writes_for_nothing(spec):
    keys = {"item": Vocabulary.of([f"i{number}" for number in range(30)], "string"), "": Vocabulary.of(["x"], "string")}
    expected, found = Encoder(spec, keys).encode({}, "user"), Nobody.of(spec)
    assert found.ids.tolist() == expected.ids[0].tolist()
    assert found.dense.tolist() == expected.dense[0].tolist()


def test_the_users_side_alone_becomes_nobodys_as_often_as_asked_for(item_world, spec):
    batch = next(item_world.train.batches(4000))
    torch.manual_seed(0)
    changed = Nobody.of(spec, 0.3)(batch)
    width = spec.id_width("user")
    drawn = (changed.request.ids[:, 0] == 1) & (batch.request.ids[:, 0] != 1)
    assert drawn.float().mean() == pytest.approx(0.3, abs=0.03)
    assert torch.equal(changed.request.ids[~drawn], batch.request.ids[~drawn])
    assert (changed.request.ids[drawn, 2:width] == 0).all()  # the history
    assert torch.equal(changed.request.ids[:, width:], batch.request.ids[:, width:])
    assert torch.equal(changed.request.dense, batch.request.dense)
    assert changed.candidate is batch.candidate
    assert (batch.request.ids[:, 0] != 1).all()  # the batch itself is as it was


def test_towers_are_trained_on_what_it_gives(item_world, spec, settings):
    seen: list[torch.Tensor] = []

    def change(batch):
        seen.append(batch.label)
        return Nobody.of(spec, 0.5)(batch)

    short = settings.model_copy(update={"tower_epochs": 1})
    towers = [TwoTower(spec, 8, (16,), 8, 0.0, 0.1) for _ in range(2)]
    towers[1].load_state_dict(towers[0].state_dict())
    for tower, how in zip(towers, (None, change), strict=True):
        fitting.fit_towers(tower, item_world.train, item_world.validation, short, 0, change=how)
    assert sum(map(len, seen)) == item_world.train.rows
    assert not torch.equal(*(tower.embedding.weight for tower in towers))
