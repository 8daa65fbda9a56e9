"""The cost setting of the paper (Taobao, MobiCom 2020) as synthetic index sets, and clients that send known updates.

143,534 goods, 4,815 categories and 49,023 users in one space of rows of width 18, 64,327 dense parameters; each of 100
clients holds 301 goods, 117 categories and its user row; 87% of the goods in a round's union have one holder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from flwr.app import Context
from flwr.app import Message as FlowerMessage
from flwr.clientapp import ClientApp

from federated.flower.array_records import ARRAYS, from_records, to_records
from federated.flower.flower_exchange import QUERY, message_type
from federated.privacy.randomized_response import FirstAnswers
from federated.protocol.local_update import LocalUpdate
from federated.protocol.messages import PHASES, Phase
from federated.protocol.plan import Plan
from federated.protocol.round_client import RoundClient
from federated.secure_aggregation.identity import Identity

WIDTH, SAMPLES = 18, 323
SINGLE_SHARE, SHARED_BY = 0.87, 3  # of the union's goods have one holder; the others three on average
LEAST_CLIENTS, LEAST_NEIGHBOURS = 10, 6
MEMORY = "round"


@dataclass(frozen=True)
class CostSetting:
    """Rows of one space by kind, dense parameters, clients of a round and the masks of each, and what a client holds:
    that many goods and categories, and its user row."""

    goods: int = 143_534
    categories: int = 4_815
    users: int = 49_023
    dense: int = 64_327
    clients: int = 100
    neighbours: int = 40
    goods_each: int = 301
    categories_each: int = 117
    union: int = 30_000

    @property
    def space(self) -> int:
        return self.goods + self.categories + self.users

    def scaled(self, share: float) -> CostSetting:
        """Every count times `share`, with clients enough for a round."""
        counts = {name: max(round(share * count), 1) for name, count in asdict(self).items()}
        least = {"clients": LEAST_CLIENTS, "neighbours": LEAST_NEIGHBOURS}
        return CostSetting(**{name: max(count, least.get(name, 1)) for name, count in counts.items()})


def index_sets(setting: CostSetting, seed: int) -> list[np.ndarray]:
    """Sorted places of each client."""
    generator, clients = np.random.default_rng(seed), setting.clients
    each = clients * setting.goods_each
    shared = round(each * (1 - SINGLE_SHARE) / (SHARED_BY - (SHARED_BY - 1) * SINGLE_SHARE))
    goods = generator.permutation(setting.goods)
    left = np.full(clients, setting.goods_each)
    held: list[list[int]] = [[] for _ in range(clients)]
    for row in goods[:shared]:
        for client in _takers(generator, left):
            held[client].append(int(row))
            left[client] -= 1
    single = iter(goods[shared:])
    for client in range(clients):
        held[client] += [int(next(single)) for _ in range(left[client])]
    categories = [setting.goods + generator.choice(setting.categories, setting.categories_each, replace=False)
                  for _ in range(clients)]
    users = setting.goods + setting.categories + generator.choice(setting.users, clients, replace=False)
    return [np.unique(np.concatenate([goods_, cats, [user]]))
            for goods_, cats, user in zip(held, categories, users, strict=True)]


def _takers(generator: np.random.Generator, left: np.ndarray) -> np.ndarray:
    """Two or more clients, `SHARED_BY` on average, of those with room."""
    count = 2 + generator.binomial(2, (SHARED_BY - 2) / 2)
    return generator.choice(np.flatnonzero(left), count, replace=False)


@dataclass
class KnownTrainer:
    """Sends an update drawn in advance: what is timed is the protocol and no training."""

    rows: np.ndarray
    count: int = SAMPLES

    def held(self) -> np.ndarray:
        return self.rows

    def samples(self) -> int:
        return self.count

    def train(
        self, round_number: int, places: np.ndarray, rows: np.ndarray, dense: np.ndarray, scale: float = 1.0
    ) -> LocalUpdate:
        return LocalUpdate(
            0.01 * np.ones_like(rows), np.ones(len(places), dtype=np.int64), 0.01 * np.ones_like(dense),
            self.count, self.count, 0.0,
        )


def client_app(
    plan: Plan, sets: list[np.ndarray], identities: list[Identity], folder: Path, samples: int = SAMPLES
) -> ClientApp:
    names = plan.private_places.astype(np.uint64)
    clients = [RoundClient(plan, KnownTrainer(rows, samples), FirstAnswers(folder / str(number), names),
                           identity=identities[number]) for number, rows in enumerate(sets)]
    app = ClientApp()
    for phase in PHASES:
        register = app.query if message_type(phase).startswith(QUERY) else app.train
        register(phase)(_handler(phase, clients))
    return app


def _handler(phase: Phase, clients: list[RoundClient]) -> Callable[[FlowerMessage, Context], FlowerMessage]:
    def handle(message: FlowerMessage, context: Context) -> FlowerMessage:
        memory = from_records(context.state, MEMORY) if MEMORY in context.state else {}
        client = clients[int(context.node_config["partition-id"])]
        reply, memory = client.handle(phase, from_records(message.content), memory)
        context.state[MEMORY] = to_records(memory)[ARRAYS]
        return FlowerMessage(to_records(reply), reply_to=message)

    return handle
