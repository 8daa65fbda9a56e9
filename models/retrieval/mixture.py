"""Several retrieval models as one list, as the funnel mixes its channels: each brings what its quota allows.

    score(item) = -min over models m of rank_m(item) / quota_m

so that the `candidates` best hold every model's first quota_m, and go on in the same proportion where lists overlap.
Quotas are those of a few shares, each model alone among them, by which most targets of validation are found. What the
user's history holds takes no place in a list.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field
from torch import Tensor

from contracts.features.feature_spec import FIRST_ID
from models.interactions.interactions import Interactions
from models.interactions.retriever import Fitted, Retriever
from models.interactions.splits import Holdout, Split

Settings = Mapping[str, object]
TIE = 1e-5
BLOCK = 256  # users whose scores are there at once


class MixtureSettings(BaseModel):
    """`models` by name, with `settings` as theirs; `candidates`: length of the list by which quotas are chosen;
    `hide_seen`: what the history holds takes no place."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    models: tuple[str, ...] = Field(("popularity", "item_cosine", "ease"), min_length=2)
    settings: dict[str, dict[str, Any]] = Field({})
    candidates: int = Field(100, ge=1)
    hide_seen: bool = True


def shares(models: int) -> Iterator[tuple[float, ...]]:
    """All that add up to 1 in steps of 1/4, of 1/2 for more than four models; the even ones first."""
    yield (1 / models,) * models
    steps = 4 if models <= 4 else 2
    for parts in itertools.product(range(steps + 1), repeat=models):
        if sum(parts) == steps:
            yield tuple(part / steps for part in parts)


def _merged(places: Sequence[Tensor], quotas: Sequence[float]) -> Tensor:
    """[U, table]; a model without a quota brings nothing. Of two items at one place, that goes first which the models
    together place higher."""
    scaled = torch.stack([place / quota for place, quota in zip(places, quotas, strict=True) if quota])
    return -(scaled.amin(0) + TIE * scaled.mean(0))


class Mixture:
    """`build(name, seed, settings)` gives a model that is not fitted, `fixed(name, settings, rounds)` the settings by
    which it trains for so many rounds."""

    def __init__(
        self, settings: MixtureSettings, seed: int, build: Callable[[str, int, Settings], Retriever],
        fixed: Callable[[str, Settings, int], Settings],
    ) -> None:
        self.settings, self.seed, self._build, self._fixed = settings, seed, build, fixed
        self.quotas: dict[str, float] = {}
        self.rounds: dict[str, int] = {}
        self._models: dict[str, Retriever] = {}

    def fit(self, split: Split) -> Fitted:
        """Each model, then the quotas."""
        start, s = time.perf_counter(), self.settings
        self._train(split, {name: s.settings.get(name, {}) for name in s.models})
        self.quotas = self._best(split.validation)
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
        used = {name: quota for name, quota in self.quotas.items() if quota}
        return _merged([self._places(self._models[name], users, history) for name in used], list(used.values()))

    @torch.no_grad()
    def _best(self, holdout: Holdout) -> dict[str, float]:
        """Of `shares`, the quotas that find most targets among `candidates`."""
        tried, candidates = list(shares(len(self._models))), self.settings.candidates
        found = np.zeros(len(tried))
        for users in np.array_split(holdout.asked, -(-len(holdout.asked) // BLOCK)):
            history, targets = holdout.history_of(users), holdout.targets.rows(users)
            row, item = torch.from_numpy(targets.owners), torch.from_numpy(targets.items)
            places = [self._places(model, users, history) for model in self._models.values()]
            for number, share in enumerate(tried):
                merged = _merged(places, share)[row]
                own = merged.gather(1, item[:, None])
                found[number] += int(((merged >= own).sum(1) <= candidates).sum())
        best = tried[int(found.argmax())]
        return {name: part * candidates for name, part in zip(self._models, best, strict=True)}

    def _places(self, model: Retriever, users: np.ndarray, history: Interactions) -> Tensor:
        """float [U, table], 1 for the best."""
        found = model.scores(users, history)
        found[:, :FIRST_ID] = -torch.inf
        if self.settings.hide_seen:
            found[torch.from_numpy(history.owners), torch.from_numpy(history.items)] = -torch.inf
        order = found.argsort(dim=1, descending=True, stable=True)
        places = torch.arange(1.0, found.shape[1] + 1).expand_as(found)
        return torch.empty_like(places).scatter_(1, order, places)
