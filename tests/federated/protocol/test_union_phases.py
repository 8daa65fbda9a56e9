"""The union is what the clients of a round hold, and nothing more."""

from __future__ import annotations

import numpy as np

from tests.federated.local_exchange import LocalExchange
from tests.federated.small_rounds import clients, plan, run


def test_the_union_is_what_the_clients_hold(tmp_path):
    of = plan("per_row", "cpp1")
    exchange = LocalExchange(clients(of, tmp_path), {"union": {103}})
    found = run(of, exchange)
    held = [client.trainer.held() for number, client in exchange.clients.items() if number != 103]
    assert (found.union == np.unique(np.concatenate(held))).all()


def test_rows_of_too_few_contributors_stay_out_of_the_union(tmp_path):
    of = plan("per_row", "cpp1", contributors=4)
    exchange = LocalExchange(clients(of, tmp_path))
    found = run(of, exchange)
    rows, counts = np.unique(np.concatenate([c.trainer.held() for c in exchange.clients.values()]), return_counts=True)
    assert (found.union == rows[counts >= 4]).all()
    assert (counts < 4).any()
    assert not found.row_weights[rows[counts < 4]].any()
