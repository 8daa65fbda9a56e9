from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.features.encoding import Encoder
from contracts.features.feature_spec import FIRST_ID, FeatureField, FeatureSpec
from contracts.features.vocabulary import Vocabulary
from models.inference.block_crosses import BlockCrosses

SIZES = {"user": 5, "hour": 4, "item": 7, "shop": 3}
SIDES = {"user": "user", "hour": "context", "item": "item", "shop": "item"}
PARTS = st.lists(st.sampled_from([*SIZES]), min_size=2, max_size=3, unique=True).map(tuple)
CROSSES = st.lists(st.tuples(PARTS, st.sampled_from([0, 3, 10])), max_size=6)


def made(crosses: list[tuple[tuple[str, ...], int]]) -> tuple[FeatureSpec, dict[str, Vocabulary]]:
    """With buckets, or with a vocabulary of every third code. Lists stand before what follows them."""
    fields = [FeatureField(name=name, kind="categorical", side=SIDES[name], vocabulary=name, size=size)  # type: ignore[arg-type]
              for name, size in SIZES.items()]
    fields.insert(2, FeatureField(name="tags", kind="multi_valued", side="item", vocabulary="shop", size=3, length=2))
    keys = {name: Vocabulary.of([f"{name}{n}" for n in range(size - FIRST_ID)], "string")
            for name, size in SIZES.items()}
    for number, (parts, buckets) in enumerate(crosses):
        name = f"cross{number}"
        codes = range(0, int(np.prod([SIZES[part] for part in parts])), 3)
        if not buckets:
            keys[name] = Vocabulary.of([*codes], "int64")
        fields.append(FeatureField(name=name, kind="cross", side="cross", parts=parts, buckets=buckets,
                                   vocabulary=None if buckets else name, size=(buckets or len(codes)) + FIRST_ID))
    return FeatureSpec(fields=tuple(fields)), keys


def drawn(spec: FeatureSpec, rows: int, *sides: str) -> np.ndarray:
    rng, slots = np.random.default_rng(rows), spec.id_slots(*sides)  # type: ignore[arg-type]
    return np.concatenate([rng.integers(0, slot.size, (rows, slot.width), dtype=np.int32) for slot in slots], axis=1)


@given(crosses=CROSSES, rows=st.integers(1, 9), each=st.booleans())
@settings(deadline=None)
def test_the_ids_are_those_of_the_encoder(crosses, rows, each):
    spec, keys = made(crosses)
    request, items = drawn(spec, rows if each else 1, "user", "context"), drawn(spec, rows, "item")
    parts = {slot.name: request[:, slot.start] for slot in spec.block_ids("request")}
    parts |= {slot.name: items[:, slot.start] for slot in spec.id_slots("item")}
    candidate = np.concatenate([items, np.full((rows, len(crosses)), -1, dtype=np.int32)], axis=1)
    BlockCrosses(spec, keys).write(candidate, request)
    assert candidate[:, : items.shape[1]].tolist() == items.tolist()
    assert candidate[:, items.shape[1] :].tolist() == Encoder(spec, keys).cross_ids(parts).tolist()


def test_a_known_answer():
    """The code of user 4 and item 6 is 4 * 7 + 6 = 34: bucket 4 of 10, and not divisible by 3, so unknown."""
    spec, keys = made([(("user", "item"), 10), (("user", "item"), 0), (("item", "shop"), 10)])
    candidate = np.array([[0, 0, 6, 2, 0, 0, 0], [0, 0, 5, 2, 0, 0, 0]], dtype=np.int32)
    BlockCrosses(spec, keys).write(candidate, np.array([[4, 1]], dtype=np.int32))
    assert candidate[:, 4:].tolist() == [[4 + 2, 1, 20 % 10 + 2], [3 + 2, 33 // 3 + 2, 17 % 10 + 2]]


@pytest.mark.parametrize("crosses", [[], [(("user", "item"), 10)]])
def test_no_candidates_have_none(crosses):
    spec, keys = made(crosses)
    nothing = np.empty((0, spec.id_width("item", "cross")), dtype=np.int32)
    BlockCrosses(spec, keys).write(nothing, drawn(spec, 1, "user", "context"))
    assert nothing.shape == (0, 4 + len(crosses))
