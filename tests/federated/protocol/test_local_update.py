from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated.protocol.local_update import LocalUpdate, shortened, update_words
from federated.protocol.plan import TAIL
from federated.protocol.round_server import RoundServer
from federated.secure_aggregation.fixed_point import as_words, signed
from tests.federated.local_exchange import LocalExchange, fixed_trainer
from tests.federated.small_rounds import DENSE, SPACE, WIDTH, clients, plan


@given(st.lists(st.integers(-(2**20), 2**20), min_size=1, max_size=40), st.floats(1.0, 2.0**22))
def test_no_upload_is_longer_than_agreed_and_short_ones_stay(integers, norm):
    words = as_words(np.array(integers))
    found = signed(shortened(words, norm))
    assert np.linalg.norm(found) <= norm * (1 + 1e-12)
    if np.linalg.norm(integers) <= norm:
        assert found.tolist() == integers


def test_shortening_keeps_the_direction():
    words = as_words(np.array([60_000, -30_000, 3_000]))
    found = signed(shortened(words, 20_000.0))
    assert found / found[2] == pytest.approx([20.0, -10.0, 1.0], rel=1e-3)


def test_with_noise_nothing_is_sent_but_updates_of_equal_weight():
    of = plan("union", "all", rule="plain", noise=9.0, noise_norm=1e9)
    layout = of.update_layout(np.arange(3))
    update = LocalUpdate(np.full((2, WIDTH), 0.25), np.array([7, 900]), np.full(DENSE, -0.5), 907, 950, 3.0)
    words = signed(update_words(of, layout, np.array([True, False, True]), update))
    assert of.fixed.decode(as_words(words[:DENSE])) == pytest.approx(-0.5, abs=of.fixed.step)
    assert not words[DENSE : DENSE + TAIL].any()
    rows = words[DENSE + TAIL :].reshape(3, WIDTH + 1)
    assert rows[:, -1].tolist() == [0, 0, 0]
    assert (rows[:, :-1] * of.fixed.step).mean(axis=1) == pytest.approx([0.25, 0.0, 0.25], abs=of.fixed.step)


def test_a_round_with_noise_opens_the_updates_and_the_noise_of_all(tmp_path):
    of = plan("union", "all", rule="plain", noise=1e6, noise_norm=1e4, dense=4000)
    made = clients(of, tmp_path)
    for client in made.values():
        fixed_trainer(client).dense = 4000
    exchange = LocalExchange(made, {"train": {103}})
    server = RoundServer(of, 1, exchange, np.zeros((SPACE, WIDTH), np.float32), np.zeros(4000, np.float32))
    found = server.run(exchange.clients)
    sent = np.sum([signed(shortened(update_words(of, of.update_layout(np.arange(SPACE)), np.isin(
        np.arange(SPACE), np.concatenate([of.public_places, client.trainer.held()])), fixed_trainer(client).last), 1e4))
        for number, client in made.items() if number != 103], axis=0)
    noise = found.dense / of.fixed.step - sent[:4000]
    assert noise.var() == pytest.approx(13 * 1e6, rel=0.12)  # 5 standard deviations of a variance of 4,000 draws
    assert found.dense_weight == 13
    assert (found.samples, found.samples_held, found.loss) == (0, 0, 0.0)
