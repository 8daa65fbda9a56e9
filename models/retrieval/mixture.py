"""Several retrieval models as one list, as the funnel mixes its channels: each brings what its quota allows.

    score(item) = -min over models m of rank_m(item) / quota_m

so that the `candidates` best are the union of every model's first quota_m, filled up in the same proportion where lists
overlap. Quotas are chosen by the targets of validation. What the user's history holds takes no place in a list.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from contracts.features.feature_spec import FIRST_ID
from models.interactions.evaluate import rank
from models.interactions.interactions import Interactions
from models.interactions.retriever import Fitted, Retriever
from models.interactions.splits import Split
from models.retrieval import quotas

Settings = Mapping[str, object]


class MixtureSettings(BaseModel):
    """`models` by name, with `settings` as theirs; `candidates`: length of the list by which quotas are chosen;
    `hide_seen`: what the history holds takes no place."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    models: tuple[str, ...] = Field(("popularity", "item_cosine", "ease"), min_length=2)
    settings: dict[str, dict[str, Any]] = Field({})
    candidates: int = Field(100, ge=1)
    hide_seen: bool = True


class Mixture:
    """`build(name, seed, settings)` gives a model that is not fitted, `fixed(name, settings, rounds)` the settings by
    which it trains for so many rounds."""

    def __init__(
        self, settings: MixtureSettings, seed: int, build: Callable[[str, int, Settings], Retriever],
        fixed: Callable[[str, Settings, int], Settings],
    ) -> None:
        self.settings, self.seed, self._build, self._fixed = settings, seed, build, fixed
        self.quotas: dict[str, int] = {}
        self.rounds: dict[str, int] = {}
        self._models: dict[str, Retriever] = {}

    def fit(self, split: Split) -> Fitted:
        """Each model, then the quotas."""
        start, s = time.perf_counter(), self.settings
        self._train(split, {name: s.settings.get(name, {}) for name in s.models})
        found = {name: rank(model, split.validation, hide_seen=s.hide_seen, lists=1).rank - 1
                 for name, model in self._models.items()}
        self.quotas = quotas.choose(found, s.candidates)
        seconds = time.perf_counter() - start
        return Fitted(seconds, len(split.train.items) / seconds, max(self.rounds.values()))

    def refit(self, split: Split) -> None:
        """Each model anew on this training part for as many rounds, quotas as they are."""
        s, rounds = self.settings, dict(self.rounds)
        self._train(split, {name: self._fixed(name, s.settings.get(name, {}), rounds[name]) for name in s.models})

    def _train(self, split: Split, settings: Mapping[str, Settings]) -> None:
        for name, changed in settings.items():
            self._models[name] = self._build(name, self.seed, changed)
            self.rounds[name] = self._models[name].fit(split).rounds

    @torch.no_grad()
    def scores(self, users: np.ndarray, history: Interactions) -> Tensor:
        """[U, table]."""
        least = torch.full((len(users), history.table), torch.inf)
        for name, quota in self.quotas.items():
            if quota:
                least = torch.minimum(least, self._places(self._models[name], users, history) / quota)
        return -least

    def _places(self, model: Retriever, users: np.ndarray, history: Interactions) -> Tensor:
        """float [U, table], 1 for the best."""
        found = model.scores(users, history)
        found[:, :FIRST_ID] = -torch.inf
        if self.settings.hide_seen:
            found[torch.from_numpy(history.owners), torch.from_numpy(history.items)] = -torch.inf
        order = found.argsort(dim=1, descending=True, stable=True)
        places = torch.arange(1.0, found.shape[1] + 1).expand_as(found)
        return torch.empty_like(places).scatter_(1, order, places)
