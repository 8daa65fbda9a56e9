"""Requests as in training do not drift; others do, in the field that changed and in no other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np
import pytest

from contracts.bundle.reference import Reference
from contracts.config.section import Side
from contracts.features.encoded_profiles import encoded_profiles, numbers_profile
from contracts.features.encoding import Encoded
from contracts.features.feature_spec import PADDING
from serving.bundle.loaded_bundle import LoadedBundle
from serving.metrics import running_sample
from serving.metrics.running_sample import DAY, LEAST, PER_SECOND, SIZE, Observed, RunningSample
from serving.request.query import RankAnswer, RankedItem

SIDES: tuple[Side, ...] = ("user", "context")
ROWS = 4000


def requests(loaded: LoadedBundle, hours: np.ndarray, seed: int) -> Encoded:
    draw = np.random.default_rng(seed)
    users = draw.integers(0, len(loaded.users), len(hours))
    context = {"hour": hours.tolist(), "device": draw.choice(["desk", "phone"], len(hours)).tolist()}
    encoded = loaded.encoder.encode(context, *SIDES)
    width, dense = loaded.spec.id_width("user"), len(loaded.spec.dense_slots("user"))
    encoded.ids[:, :width], encoded.dense[:, :dense] = loaded.users.ids[users], loaded.users.dense[users]
    return encoded


def an_answer(loaded: LoadedBundle, inputs: Encoded, row: int, probability: float) -> RankAnswer:
    item = RankedItem(item=loaded.items.key(row), probability=probability, score=1.0, sold=None, channel="two_tower",
                      stage_scores={}, reasons=[])
    return RankAnswer([item], [], "v", [], True, inputs)


@pytest.fixture(scope="module")
def reference(loaded: LoadedBundle) -> Reference:
    trained = requests(loaded, np.random.default_rng(1).uniform(0, 24, ROWS), 1)
    rows = np.random.default_rng(2).integers(0, 40, ROWS)
    items = Encoded(np.asarray(loaded.items.ids)[rows], np.asarray(loaded.items.dense)[rows])
    fields = encoded_profiles(loaded.spec, SIDES, trained) | encoded_profiles(loaded.spec, ("item",), items)
    scores = numbers_profile(np.random.default_rng(3).uniform(0, 0.2, ROWS))
    return Reference(rows=ROWS, shown=ROWS, fields=fields, scores=scores)


@pytest.fixture
def ticks() -> Iterator[float]:
    return (1.5 * n / PER_SECOND for n in count(1))


def told(loaded: LoadedBundle, reference: Reference, ticks: Iterator[float], hours: np.ndarray,
         most: float = 0.2) -> RunningSample:
    sample = RunningSample(loaded, reference, lambda: next(ticks))
    inputs, draw = requests(loaded, hours, 4), np.random.default_rng(5)
    for n in range(len(hours)):
        one = Encoded(inputs.ids[n : n + 1], inputs.dense[n : n + 1])
        sample.tell(an_answer(loaded, one, int(draw.integers(0, 40)), float(draw.uniform(0, most))))
    return sample


def test_the_same_traffic_drifts_in_nothing(
    loaded: LoadedBundle, reference: Reference, ticks: Iterator[float]
) -> None:
    found = told(loaded, reference, ticks, np.random.default_rng(6).uniform(0, 24, 1000)).drift()
    assert found.fields is not None
    assert found.scores is not None
    assert set(found.fields) == {field.name for field in loaded.spec.of_side("user", "context", "item")}
    assert max(found.fields.values()) < 0.15
    assert found.scores < 0.05


def test_the_field_that_changed_drifts_alone(
    loaded: LoadedBundle, reference: Reference, ticks: Iterator[float]
) -> None:
    found = told(loaded, reference, ticks, np.full(1000, 3.0), most=0.9).drift()
    assert found.fields is not None
    assert found.scores is not None
    assert found.fields["hour"] > 1
    assert max(value for name, value in found.fields.items() if name != "hour") < 0.15
    assert found.scores > 0.5


def test_a_small_sample_says_nothing(loaded: LoadedBundle, reference: Reference, ticks: Iterator[float]) -> None:
    found = told(loaded, reference, ticks, np.full(LEAST - 1, 3.0)).drift()
    assert found == (LEAST - 1, None, None)


def test_no_more_than_so_many_a_second_are_taken(loaded: LoadedBundle, reference: Reference) -> None:
    still = iter([5.0] * 20)
    assert told(loaded, reference, still, np.full(20, 3.0)).drift().requests == 1


def test_a_field_that_goes_missing_drifts(
    loaded: LoadedBundle, reference: Reference, ticks: Iterator[float]
) -> None:
    sample = RunningSample(loaded, reference, lambda: next(ticks))
    inputs = requests(loaded, np.random.default_rng(6).uniform(0, 24, LEAST), 4)
    [device] = [slot for slot in loaded.spec.id_slots(*SIDES) if slot.field == "device"]
    inputs.ids[: LEAST * 6 // 10, device.start] = PADDING
    for n in range(LEAST):
        sample.tell(an_answer(loaded, Encoded(inputs.ids[n : n + 1], inputs.dense[n : n + 1]), n % 40, 0.1))
    found = sample.drift().fields
    assert found is not None
    assert found["device"] > 1
    assert max(found[name] for name in ("hour", "item_id")) < 0.2


@pytest.mark.parametrize("seconds", [600, 7200, 200_000])
def test_the_sample_reaches_back_to_the_first_answer_or_a_day(
    loaded: LoadedBundle, reference: Reference, seconds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, times = [0.0], list[float]()

    def taken(*parts: Any) -> Observed:
        times.append(now[0])
        return Observed(*parts)

    monkeypatch.setattr(running_sample, "Observed", taken)
    sample, inputs = RunningSample(loaded, reference, lambda: now[0]), requests(loaded, np.full(1, 3.0), 4)
    while now[0] < seconds:
        sample.tell(an_answer(loaded, inputs, 0, 0.1))
        now[0] += max(0.05, now[0] / 10_000)
    assert times[LEAST - 1] < 60
    assert now[0] - times[-SIZE:][0] >= 0.95 * min(seconds, DAY)
