from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from contracts.features.feature_spec import FeatureSpec
from models.examples.shown_items import shown_items
from models.layers.embedding import item_slot


def test_every_shown_item_is_there_once_as_last_shown(spec: FeatureSpec, item_world: Any) -> None:
    slot = item_slot(spec)
    assert slot is not None
    found = shown_items([item_world.train, item_world.validation], slot)
    shown = np.concatenate([item_world.train.column("item"), item_world.validation.column("item")])
    ids, counts = np.unique(shown, return_counts=True)
    assert found.ids.tolist() == ids.tolist()
    assert found.impressions.tolist() == counts.tolist()
    (batch,) = item_world.validation.batches(100_000)
    last = int((batch.candidate.ids[:, slot.start] == found.ids[3]).nonzero()[-1])
    width = found.columns.ids.shape[1]
    assert width == spec.id_width("item") < batch.candidate.ids.shape[1]  # without the cross
    torch.testing.assert_close(found.columns.ids[3], batch.candidate.ids[last, :width])
    torch.testing.assert_close(found.columns.dense[3], batch.candidate.dense[last])


def test_every_item_is_drawn_as_often_and_with_its_own_columns(spec: FeatureSpec, item_world: Any) -> None:
    slot = item_slot(spec)
    assert slot is not None
    found = shown_items([item_world.train], slot)
    torch.manual_seed(1)
    ids, columns = found.draw(30_000, torch.device("cpu"))
    counts = torch.bincount(ids)[found.ids].numpy()
    assert counts == pytest.approx(30_000 / len(found.ids), rel=0.2)
    assert (columns.ids[:, slot.start] == ids).all()


def test_without_an_item_id_there_are_none(item_world: Any) -> None:
    assert len(shown_items([item_world.train], None).ids) == 0
