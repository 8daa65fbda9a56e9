"""A running sample of what is served, and how far it is from what the bundle was made from.

    PSI of a field      user and context fields of sampled requests against training, their histories and counters as
                        they have become since; item fields of the shown items against the bundle's own slates for
                        validation's requests, live ones as they are now
    PSI of the scores   calibrated probabilities of the shown items against those of the same slates

The reference is contracts/bundle/reference.py, the code that of `sluice quality`. Fields that are made from the clock
are not compared. The sample holds the last SIZE requests taken, and is to reach back to the first answer, or a day:
t seconds after the first one request is taken every t / LEAST seconds, at least 1 / PER_SECOND and at most DAY / SIZE.
Below LEAST nothing is said: PSI of equal distributions in B bins is about (B - 1) / n by chance alone.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from contracts.bundle.reference import Reference
from contracts.features.drift import field_psi
from contracts.features.encoded_profiles import encoded_profiles, numbers_profile
from contracts.features.encoding import Encoded
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.query import RankAnswer

SIZE, LEAST, PER_SECOND, DAY = 2000, 500, 10.0, 86_400.0


class Observed(NamedTuple):
    """`inputs` [1, ...] of a requester; the `rows` of the shown items that the bundle has, and their probabilities."""

    inputs: Encoded
    rows: np.ndarray
    probabilities: np.ndarray


class Drift(NamedTuple):
    """`fields` by name, and of the `scores`: PSI. From `requests` of the sample, None of both while it is small."""

    requests: int
    fields: Mapping[str, float] | None = None
    scores: float | None = None


class RunningSample:
    """`tell` belongs to one thread, `drift` may have another; `clock` in seconds."""

    def __init__(self, bundle: LoadedBundle, reference: Reference, clock: Callable[[], float] = time.monotonic) -> None:
        self.reference, self._bundle, self._clock = reference, bundle, clock
        self._held: deque[Observed] = deque(maxlen=SIZE)
        self._begun: float | None = None
        self._next = 0.0

    def tell(self, answer: RankAnswer) -> None:
        """An answer that was sent."""
        now = self._clock()
        if answer.inputs is None or now < self._next:
            return
        self._begun = now if self._begun is None else self._begun
        self._next = now + min(max((now - self._begun) / LEAST, 1 / PER_SECOND), DAY / SIZE)
        rows = self._bundle.items.rows([item.item for item in answer.items]) if answer.items else np.empty(0, np.int32)
        shown = np.array([item.probability for item in answer.items])
        self._held.append(Observed(answer.inputs, rows[rows >= 0], shown))

    def drift(self) -> Drift:
        """Of the sample as it is now."""
        held = list(self._held)
        if len(held) < LEAST:
            return Drift(len(held))
        items, spec = self._bundle.items, self._bundle.spec
        rows = np.concatenate([one.rows for one in held])
        requests = Encoded(*(np.concatenate([one.inputs[part] for one in held]) for part in (0, 1)))
        shown = Encoded(np.asarray(items.ids)[rows], np.asarray(items.dense)[rows])
        for live in self._bundle.live:
            live.write(rows, *shown)
        now = encoded_profiles(spec, ("user", "context"), requests) | encoded_profiles(spec, ("item",), shown)
        items_shown = {field.name for field in spec.of_side("item")}
        fields = {name: field_psi(now[name], len(rows) if name in items_shown else len(held), before,
                                  self.reference.counted(name, name in items_shown))
                  for name, before in self.reference.fields.items() if name in now}
        probabilities = np.concatenate([one.probabilities for one in held])
        scores = field_psi(numbers_profile(probabilities), len(probabilities), self.reference.scores,
                           self.reference.shown)
        return Drift(len(held), fields, scores)
