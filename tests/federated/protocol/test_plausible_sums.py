"""What can be a sum of honest uploads, and what cannot."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import RoundAbandoned
from federated.privacy import skellam
from federated.privacy.skellam import noise_words
from federated.protocol.local_update import LocalUpdate, update_words
from federated.protocol.plan import TAIL
from federated.protocol.plausible_sums import require_counts, require_plausible
from federated.secure_aggregation.masking import Total
from tests.federated.local_exchange import LocalExchange
from tests.federated.meddling import Meddling
from tests.federated.small_rounds import DENSE, SPACE, WIDTH, clients, plan, run

NAMED = {client: np.sort(np.random.default_rng(client).choice(SPACE, 20, replace=False)) for client in (3, 5, 8)}
RULES = ("holders", "heat", "plain", "latest")


def heaviest(of, places):
    """Of a client at every bound: each sample uses each row, each entry is at the clip."""
    v = of.max_samples
    update = LocalUpdate(
        np.full((len(places), WIDTH), -of.clip), np.full(len(places), v), np.full(DENSE, of.clip), v, v, 1.0)
    return update_words(of, of.update_layout(places), np.ones(len(places), bool), update)


def total_of(of, words):
    total = Total(of.update_layout(np.empty(0, dtype=np.int64)))
    for mine in NAMED.values():
        total.add(of.update_layout(mine), words(of, mine))
    return total


def refused(of, total):
    with pytest.raises(RoundAbandoned, match="no sum of 3 clients") as refusal:
        require_plausible(of, 4, total, NAMED, list(NAMED))
    assert refusal.value.suspects == tuple(NAMED)


@pytest.mark.parametrize("rule", RULES)
def test_what_honest_clients_can_send_passes_and_a_step_more_does_not(rule):
    of = plan("per_row", "cpp2", rule=rule)
    require_plausible(of, 4, total_of(of, heaviest), NAMED, list(NAMED))
    for at, step in ((0, 1), (DENSE, 1), (DENSE + 1, 1), (DENSE + 2, -1 - 10**9)):
        spoilt = total_of(of, heaviest)
        spoilt.common[[at]] += np.uint32(step % 2**32)
        refused(of, spoilt)
    for place in (NAMED[3][0], np.setdiff1d(np.arange(SPACE), np.concatenate(list(NAMED.values())))[0]):
        for column, step in ((0, -1), (WIDTH, 1), (WIDTH, -(2**20))):
            spoilt = total_of(of, heaviest)
            spoilt.rows[[place], column] += np.uint32(step % 2**32)
            refused(of, spoilt)


def test_noise_passes_and_words_beyond_its_reach_do_not():
    of = plan("union", "cpp5", rule="plain", noise=400.0, noise_norm=50.0)

    def noisy(of, places):
        words = np.zeros(of.update_layout(places).size, dtype=np.uint32)
        words[0] = 50
        return words + noise_words(of.noise, words.size)

    for _ in range(20):
        require_plausible(of, 4, total_of(of, noisy), NAMED, list(NAMED))
    reach = skellam.reach(3 * 400.0)
    for at, allowed in ((0, 150), (DENSE, 0), (DENSE + TAIL - 1, 0)):
        spoilt = total_of(of, noisy)
        spoilt.common[at] = reach + allowed
        require_plausible(of, 4, spoilt, NAMED, list(NAMED))
        spoilt.common[at] += 1
        refused(of, spoilt)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("noise", [0.0, 1e6])
def test_uniform_words_are_no_sum(rule, noise):
    if noise and rule != "plain":
        return
    of = plan("union", "cpp5", rule=rule, noise=noise, noise_norm=1000.0)
    drawn = np.random.default_rng(1)
    for _ in range(50):
        spoilt = total_of(of, heaviest)
        spoilt.common += drawn.integers(2**32, size=spoilt.common.size, dtype=np.uint32)
        refused(of, spoilt)


def test_counts_are_of_those_who_were_counted():
    require_counts(4, np.array([3, 0, 45]), 2, (3, 5, 8))
    for words in ([4, 0, 45], [3, 0, 46]):
        with pytest.raises(RoundAbandoned) as refusal:
            require_counts(4, np.array(words), 2, (3, 5, 8))
        assert refusal.value.suspects == (3, 5, 8)


@pytest.mark.parametrize("policy", ["cpp1", "cpp2"])
def test_who_masks_other_rows_than_it_names_spoils_no_sum_that_is_taken(tmp_path, policy):
    """As many rows as it named, so that nothing but the sum tells."""
    of = plan("per_row", policy)

    def others(reply):
        bits = np.unpackbits(reply["chosen"])
        yes, no = np.flatnonzero(bits), np.flatnonzero(bits == 0)
        bits[yes[:2]], bits[no[:2]] = 0, 1
        return reply | {"chosen": np.packbits(bits)}

    with pytest.raises(RoundAbandoned, match="no sum of 14 clients"):
        run(of, Meddling(clients(of, tmp_path), "choose", 104, others))


def test_words_of_any_kind_spoil_no_sum_that_is_taken(tmp_path):
    of = plan("union", "cpp5", contributors=2)
    for phase in ("union", "train"):
        exchange: LocalExchange = Meddling(
            clients(of, tmp_path), phase, 104, lambda reply: {"words": reply["words"] ^ np.uint32(0x5A5A5A5A)})
        with pytest.raises(RoundAbandoned, match="no sum of 14 clients"):
            run(of, exchange)
