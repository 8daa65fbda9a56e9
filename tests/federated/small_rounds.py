"""Rounds of fourteen clients whose updates are known in advance, and what the sums of them must be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from federated.privacy.index_policy import POLICIES
from federated.privacy.randomized_response import FirstAnswers
from federated.protocol.local_update import update_words
from federated.protocol.plan import TAIL, Plan
from federated.protocol.round_client import RoundClient
from federated.protocol.round_server import OpenedRound, RoundServer
from tests.federated.local_exchange import IDENTITIES, PUBLISHED, FixedTrainer, LocalExchange, fixed_trainer

SPACE, WIDTH, DENSE, CLIENTS = 60, 3, 11, 14


def plan(masking: str, policy: str, **changes: Any) -> Plan:
    settings: dict[str, Any] = {
        "space": SPACE, "private": ((5, 40), (45, SPACE)), "width": WIDTH, "dense": DENSE, "policy": POLICIES[policy],
        "masking": masking, "clients": CLIENTS, "neighbours": 8, "buckets": 3,
        "identities": PUBLISHED if masking != "none" else (),
    }
    return Plan(**settings | changes)


def clients(of: Plan, folder: Path, count: int = CLIENTS) -> dict[int, RoundClient]:
    """Numbered from 100; each holds nine private rows."""
    made = {}
    for number in range(count):
        held = np.sort(np.random.default_rng(number).choice(of.private_places, 9, replace=False))
        trainer = FixedTrainer(held, WIDTH, DENSE, number)
        answers = FirstAnswers(folder / str(number), of.private_places.astype(np.uint64))
        made[number + 100] = RoundClient(of, trainer, answers,
                                         identity=IDENTITIES[number] if of.identities else None)
    return made


def run(of: Plan, exchange: LocalExchange, number: int = 1, name: bytes = bytes(32)) -> OpenedRound:
    """A round of all the clients of an exchange, from the same model every time, in the run of this name."""
    tables = np.random.default_rng(0).normal(size=(SPACE, WIDTH)).astype(np.float32)
    server = RoundServer(of, number, exchange, tables, np.zeros(DENSE, dtype=np.float32), run=name)
    return server.run(exchange.clients)


def plaintext(of: Plan, exchange: LocalExchange, survivors: set[int]) -> tuple[np.ndarray, np.ndarray]:
    """Words of rows [space, width + 1] and of the common part: sums of the survivors' own words, by the slowest way."""
    rows, common = np.zeros((SPACE, WIDTH + 1), dtype=np.uint32), np.zeros(DENSE + TAIL, dtype=np.uint32)
    for number in survivors:
        client = exchange.clients[number]
        places = client.places(exchange.memory[number])
        succinct = np.isin(places, np.concatenate([of.public_places, client.trainer.held()]))
        words = update_words(of, of.update_layout(places), succinct, fixed_trainer(client).last)
        common += words[: DENSE + TAIL]
        for place, row in zip(places, words[DENSE + TAIL :].reshape(-1, WIDTH + 1), strict=True):
            rows[place] += row
    return rows, common
