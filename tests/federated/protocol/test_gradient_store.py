"""What a client remembers of what it sent, on its disk."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from federated.protocol.gradient_store import NO_RUN, GradientStore
from federated.protocol.local_update import LocalUpdate
from tests.federated.small_rounds import DENSE, WIDTH, plan


def test_a_row_used_no_more_is_declared_and_taken_back(tmp_path):
    of = plan("none", "cpp1", rule="latest")
    store = GradientStore(tmp_path / "g.safetensors", DENSE, WIDTH)
    places, succinct = np.array([6, 9]), np.ones(2, dtype=bool)
    first = LocalUpdate(np.ones((2, WIDTH)), np.ones(2, np.int64), np.ones(DENSE), 1, 1, 0.0)
    store.difference(of, 1, 0, places, succinct, first)
    again = GradientStore(tmp_path / "g.safetensors", DENSE, WIDTH)
    assert again.places(NO_RUN).tolist() == [6, 9]
    nothing = LocalUpdate(np.zeros((2, WIDTH)), np.zeros(2, np.int64), np.zeros(DENSE), 1, 1, 0.0)
    sent = again.difference(of, 2, 1, places, succinct, nothing)
    assert sent.rows == pytest.approx(np.ones((2, WIDTH)), abs=of.fixed.step)  # the gradient was -1: minus that
    again.difference(of, 3, 2, np.empty(0, np.int64), np.empty(0, bool), replace(
        nothing, rows=np.zeros((0, WIDTH)), row_samples=np.zeros(0, np.int64)))
    assert again.committed().places.size == 0


def test_what_is_clipped_follows_with_the_next_upload(tmp_path):
    of = plan("none", "all", rule="latest", clip=0.5)
    store = GradientStore(tmp_path / "g.safetensors", DENSE, WIDTH)
    big = LocalUpdate(np.zeros((0, WIDTH)), np.zeros(0, np.int64), np.full(DENSE, -1.2), 1, 1, 0.0)
    sent = [store.difference(of, number, number - 1, np.empty(0, np.int64), np.empty(0, bool), big).dense[0]
            for number in (1, 2, 3, 4)]
    assert sent == pytest.approx([0.5, 0.5, 0.2, 0.0], abs=2 * of.fixed.step)
