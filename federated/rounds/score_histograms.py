"""Calibration and popularity without anybody's scores: clients add histograms under masks, the server opens the sums.

Each client downloads the finished model, which is published anyway, scores its own later rows that trained nothing, and
uploads counts: per bin of the ranker's logit the rows and the clicks, the same for the pre-ranker (SCORES), and per
item how often it was shown and clicked (HISTOGRAMS). Counts per item say more of a client that is in one sum and not in
the next than its scores do, and no model changes them: they are asked for once in a run, when the rounds are done. A
client does not remember that it told them, and tells another run again. It counts its latest `max_samples` rows, as
many as it trains on. A bin's rows stand at its middle when the curve is fitted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from contracts.config.config import Config
from contracts.errors import DataError, ProtocolError
from contracts.features.feature_spec import FeatureSpec
from federated.clients.networks import FederatedNetworks
from federated.privacy.index_policy import POLICIES
from federated.protocol.local_update import LocalUpdate
from federated.protocol.plan import ATTEMPTS, TOGETHER, Plan
from models.examples.batches import Batch
from models.layers.embedding import item_slot
from models.networks.tower_pre_ranker import TowersPreRanker

LIMIT, BINS = 10.0, 400
SCORERS = ("ranker", "pre_ranker")
PLACES = {"ranker": 0, "pre_ranker": 1, "common": 0, "personal": 1}  # the last two: heads (personal_scores.py)
OF_SCORES = 2 * len(SCORERS) * BINS  # counts before those of items: rows and clicks
COUNTED = "histograms.safetensors"
AT_THE_END = 1  # the number of the one count with items


def middles() -> np.ndarray:
    """Logits [BINS] in the middle of each bin."""
    edges = np.linspace(-LIMIT, LIMIT, BINS + 1)
    return (edges[1:] + edges[:-1]) / 2


@dataclass(frozen=True)
class Histograms:
    """int64: `rows` and `clicks` [2, BINS] of ranker and pre-ranker, `shown` and `clicked` [items] by the item's id."""

    rows: np.ndarray
    clicks: np.ndarray
    shown: np.ndarray
    clicked: np.ndarray

    def flat(self) -> np.ndarray:
        """All counts in a row, as they are summed."""
        return np.concatenate([self.rows.ravel(), self.clicks.ravel(), self.shown, self.clicked])

    @classmethod
    def of_flat(cls, values: np.ndarray, items: int) -> Histograms:
        """From the head of an opened sum: whole numbers, decoded as floats."""
        counts = np.rint(values).astype(np.int64)
        rows, clicks, shown, clicked, _ = np.split(counts, np.cumsum([2 * BINS, 2 * BINS, items, items]))
        return cls(rows.reshape(2, BINS), clicks.reshape(2, BINS), shown, clicked)

    def plus(self, other: Histograms) -> Histograms:
        """Of both together."""
        return Histograms(self.rows + other.rows, self.clicks + other.clicks, self.shown + other.shown,
                          self.clicked + other.clicked)

    def auc(self, which: str = "ranker") -> float | None:
        """Probability that a click's bin is above another row's, half where they share one; None with one class."""
        place = PLACES[which]
        clicks, others = self.clicks[place], self.rows[place] - self.clicks[place]
        pairs = float(clicks.sum()) * float(others.sum())
        below = np.cumsum(others) - others
        return float((clicks * (below + others / 2)).sum() / pairs) if pairs else None

    def predicted_over_observed(self, which: str = "ranker") -> float | None:
        """Clicks that the scores say, at the middle of each bin, over clicks there were; None without any."""
        place = PLACES[which]
        clicks = int(self.clicks[place].sum())
        return float((self.rows[place] / (1 + np.exp(-middles()))).sum() / clicks) if clicks else None

    def arrays(self) -> dict[str, np.ndarray]:
        """As a file keeps them."""
        return {"rows": self.rows, "clicks": self.clicks, "shown": self.shown, "clicked": self.clicked}

    def as_rows(self, which: str) -> tuple[np.ndarray, np.ndarray]:
        """Logits and labels of as many rows as were counted. Raises DataError when there are none."""
        place = PLACES[which]
        clicks, others = self.clicks[place], self.rows[place] - self.clicks[place]
        if not self.rows[place].sum():
            raise DataError("no client had later rows to calibrate on; widen the validation window")
        logits = np.concatenate([np.repeat(middles(), clicks), np.repeat(middles(), others)])
        return logits, np.repeat([1.0, 0.0], [clicks.sum(), others.sum()])


def item_count(spec: FeatureSpec) -> int:
    """Ids of the field that names the item; 1 where there is none."""
    slot = item_slot(spec)
    return slot.size if slot else 1


def histogram_plan(
    counts: str, config: Config, spec: FeatureSpec, networks: FederatedNetworks, identities: tuple[bytes, ...]
) -> Plan:
    """A round without rows whose dense part is the model on the way down, and counts (in steps of 1) on the way up.
    `counts`: one of COUNTING. A client has at most `max_samples` later rows, and so no larger count."""
    rows, dense = networks.read()
    most = config.federated.max_samples
    size = max(rows.size + dense.size, 4 * BINS + 2 * item_count(spec))
    return Plan(
        space=0, private=(), width=1, dense=size, policy=POLICIES["all"], masking="union", rule="heat",
        clip=most, levels=2 * (most + 1), max_samples=1, clients=min(len(identities), TOGETHER),
        neighbours=config.federated.neighbours,
        min_clients=config.federated.min_clients, timeout=config.federated.timeout, identities=identities,
        counts=counts,
    )


def model_as_vector(rows: np.ndarray, dense: np.ndarray, size: int) -> np.ndarray:
    """float32 [size]: rows, then the dense part, then zeros."""
    vector = np.zeros(size, dtype=np.float32)
    vector[: rows.size + dense.size] = np.concatenate([rows.ravel(), dense])
    return vector


def model_of(networks: FederatedNetworks, vector: np.ndarray) -> None:
    """Fills the networks from what a client was sent."""
    rows, dense = networks.read()
    networks.write(vector[: rows.size].reshape(rows.shape), vector[rows.size : rows.size + dense.size])


def binned(logits: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int64 rows and clicks [BINS]; beyond the limits a row counts in the outermost bin."""
    bins = np.clip((logits + LIMIT) / (2 * LIMIT) * BINS, 0, BINS - 1).astype(np.int64)
    clicks = np.bincount(bins, weights=labels, minlength=BINS)
    return np.bincount(bins, minlength=BINS), clicks.astype(np.int64)


def require_at_the_end(round_number: int, what: str) -> None:
    """Raises ProtocolError where `what` is asked for in a round that is none of the attempts at the end: evaluations on
    the way do not add it up, of other clients each time."""
    if round_number // ATTEMPTS != AT_THE_END:
        raise ProtocolError(f"counts of {what} in round {round_number}; they are added up once, in rounds "
                            f"{AT_THE_END * ATTEMPTS} to {(AT_THE_END + 1) * ATTEMPTS - 1}; refused")


@torch.inference_mode()
def count(networks: FederatedNetworks, spec: FeatureSpec, batch: Batch) -> Histograms:
    """Of one client's rows."""
    networks.eval()
    shown_at = networks.bias(batch.position)
    scorers = (networks.ranker, TowersPreRanker(networks.towers, networks.pre_ranker))
    labels, items = batch.label.numpy().astype(np.int64), item_count(spec)
    rows, clicks = np.zeros((2, BINS), np.int64), np.zeros((2, BINS), np.int64)
    for place, network in enumerate(scorers):
        logits = (network(batch.request, batch.candidate) + shown_at).numpy()
        rows[place], clicks[place] = binned(logits, labels)
    slot = item_slot(spec)
    ids = batch.candidate.ids[:, slot.start].numpy() if slot else np.zeros(len(labels), dtype=np.int64)
    shown, clicked = (np.bincount(ids, weights=w, minlength=items) for w in (np.ones(len(ids)), labels))
    return Histograms(rows, clicks, shown.astype(np.int64), clicked.astype(np.int64))


@dataclass
class HistogramTrainer:
    """Takes part in a round that counts: what it sends as its dense part begins with its counts, with those `of_items`
    or without."""

    networks: FederatedNetworks
    spec: FeatureSpec
    batch: Batch
    of_items: bool

    def held(self) -> np.ndarray:
        """None: the round has no rows."""
        return np.empty(0, dtype=np.int64)

    def samples(self) -> int:
        """Later rows, which are counted and not trained on."""
        return len(self.batch.label)

    def train(
        self, round_number: int, places: np.ndarray, rows: np.ndarray, dense: np.ndarray, scale: float = 1.0
    ) -> LocalUpdate:
        """`dense` is the model on the way down; returned in its place are counts, in steps of 1. Raises ProtocolError
        where items are asked for before the end."""
        if self.of_items:
            require_at_the_end(round_number, "items")
        model_of(self.networks, dense)
        counts = np.zeros(len(dense))
        if len(self.batch.label):
            flat = count(self.networks, self.spec, self.batch).flat()
            told = len(flat) if self.of_items else OF_SCORES
            counts[:told] = flat[:told]
        nothing = np.zeros((0, rows.shape[1])), np.zeros(0, dtype=np.int64)
        return LocalUpdate(*nothing, counts, len(self.batch.label), len(self.batch.label), 0.0)
