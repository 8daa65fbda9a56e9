"""What heads of their own give the clients: each fits its own, keeps it, and scores its later rows with the common head
and with that; the clients add up histograms of both, under masks, once, when the rounds are done.

A histogram has room for two scorers (federated/rounds/score_histograms.py): here they are the two heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from contracts.config.config import Config
from contracts.summaries.federated import PersonalFigures
from federated.clients import personal_head
from federated.clients.networks import FederatedNetworks
from federated.clients.personal_head import HeadSettings
from federated.protocol.local_update import LocalUpdate
from federated.rounds.client_evaluation import together
from federated.rounds.score_histograms import (
    BINS,
    OF_SCORES,
    Histograms,
    binned,
    model_of,
    require_at_the_end,
)
from models.examples.batches import Batch

COMMON, PERSONAL = "common", "personal"


@torch.inference_mode()
def logits(networks: FederatedNetworks, batch: Batch) -> np.ndarray:
    """[B] of the ranker, where the rows were shown."""
    networks.eval()
    return (networks.ranker(batch.request, batch.candidate) + networks.bias(batch.position)).numpy()


@dataclass
class PersonalTrainer:
    """Takes part in a round that counts what heads give. `own` rows fit the head of client `number`, `later` ones are
    counted."""

    networks: FederatedNetworks
    config: Config
    own: Batch
    later: Batch
    folder: Path
    number: int

    def held(self) -> np.ndarray:
        """None: the round has no rows."""
        return np.empty(0, dtype=np.int64)

    def samples(self) -> int:
        """Later rows, which are counted and not trained on."""
        return len(self.later.label)

    def train(
        self, round_number: int, places: np.ndarray, rows: np.ndarray, dense: np.ndarray, scale: float = 1.0
    ) -> LocalUpdate:
        """`dense` is the model on the way down; returned in its place are counts, in steps of 1. Raises ProtocolError
        in a round that is none of the attempts at the end."""
        require_at_the_end(round_number, "personal heads")
        model_of(self.networks, dense)
        counts = np.zeros(len(dense))
        counts[:OF_SCORES] = self._histograms().flat()[:OF_SCORES]
        nothing = np.zeros((0, rows.shape[1])), np.zeros(0, dtype=np.int64)
        return LocalUpdate(*nothing, counts, len(self.later.label), len(self.later.label), 0.0)

    def _histograms(self) -> Histograms:
        model, common = personal_head.model_name(self.networks), logits(self.networks, self.later)
        personal_head.fit(self.networks, self.own, HeadSettings.of(self.config))
        personal_head.keep(self.folder, self.number, model, self.networks)
        return of_heads(self.later, common, logits(self.networks, self.later))


def of_heads(later: Batch, common: np.ndarray, personal: np.ndarray) -> Histograms:
    """Of rows that both heads scored; nothing of items."""
    labels = later.label.numpy().astype(np.int64)
    counted = [binned(each, labels) for each in (common, personal)]
    rows, clicks = (np.array(each).reshape(2, BINS) for each in zip(*counted, strict=True))
    nothing = np.zeros(0, dtype=np.int64)
    return Histograms(rows, clicks, nothing, nothing)


def figures(counted: Sequence[Histograms]) -> PersonalFigures:
    """Of all cohorts together."""
    both = together(counted)
    return PersonalFigures(
        rows=int(both.rows[0].sum()), auc_common=both.auc(COMMON), auc=both.auc(PERSONAL),
        predicted_over_observed_common=both.predicted_over_observed(COMMON),
        predicted_over_observed=both.predicted_over_observed(PERSONAL))
