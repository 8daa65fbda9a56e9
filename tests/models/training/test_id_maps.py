"""Old ids of new ids, against a look-up written value by value."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.features.encoding import Encoder, bin_ids
from contracts.features.feature_spec import FeatureField, FeatureSpec
from contracts.features.vocabulary import Vocabulary
from models.training.id_maps import NEW, bin_map, id_maps

KEYS = st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=8, unique=True)


def spec(first: list[str], second: list[str], crosses: list[tuple[str, str]], edges=(1.0,), buckets: int = 0):
    """Two categorical fields, one number, and their cross with the pairs that it knows; answers spec and keys."""
    keys = {"a": Vocabulary.of(first, "string"), "b": Vocabulary.of(second, "string")}
    sizes = {name: len(values) + 2 for name, values in keys.items()}
    ids = {name: {key: place + 2 for place, key in enumerate(values.keys().to_pylist())}
           for name, values in keys.items()}
    codes = sorted({ids["a"].get(x, 1) * sizes["b"] + ids["b"].get(y, 1) for x, y in crosses})
    keys["ab"] = Vocabulary.of(codes, "int64")
    fields = [FeatureField(name=name, kind="categorical", side="user", vocabulary=name, size=sizes[name])
              for name in ("a", "b")]
    fields.append(FeatureField(name="n", kind="numeric", side="user", edges={9: tuple(edges)}))
    fields.append(FeatureField(name="ab", kind="cross", side="cross", parts=("a", "b"), buckets=buckets,
                               vocabulary=None if buckets else "ab", size=(buckets or len(codes)) + 2))
    return FeatureSpec(fields=tuple(fields)), keys


def encoded(made, values: dict[str, str]) -> dict[str, int]:
    encoder = Encoder(*made)
    ids = {name: encoder.field_ids(made[0].by_name[name], [values[name]])[0][:, 0] for name in ("a", "b")}
    return {"a": int(ids["a"][0]), "b": int(ids["b"][0]), "ab": int(encoder.cross_ids(ids)[0, 0])}


@given(KEYS, KEYS, KEYS, KEYS, st.data())
@settings(deadline=None)
def test_what_both_specs_know_keeps_its_row_and_the_rest_is_new(old_a, old_b, new_a, new_b, data):
    pairs = [(x, y) for x in "abcdefghij" for y in "abcdefghij"]
    chosen = st.lists(st.sampled_from(pairs), min_size=1, max_size=30)
    old, new = spec(old_a, old_b, data.draw(chosen)), spec(new_a, new_b, data.draw(chosen))
    maps = id_maps(*old, *new)
    assert {name: len(ids) for name, ids in maps.items()} == {s.name: s.size for s in new[0].id_slots("user", "cross")}
    for values in ({"a": x, "b": y} for x, y in pairs):
        before, now = encoded(old, values), encoded(new, values)
        for name in ("a", "b"):
            if now[name] > 1:
                assert maps[name][now[name]] == (before[name] if before[name] > 1 else NEW)
        if now["ab"] > 1 and all(now[name] > 1 and before[name] > 1 for name in "ab"):
            assert maps["ab"][now["ab"]] == (before["ab"] if before["ab"] > 1 else NEW)
    assert all(ids[:2].tolist() == [0, 1] for ids in maps.values())


def test_a_new_field_another_kind_and_another_key_type_are_new_throughout():
    old, new = spec(["x"], ["y"], [("x", "y")]), spec(["x"], ["y"], [("x", "y")])
    renamed = FeatureSpec(fields=tuple(
        one.model_copy(update={"key_type": "bool"} if one.name == "a" else {}) for one in old[0].fields
        if one.name not in ("b", "ab")))
    maps = id_maps(renamed, old[1], *new)
    assert all((maps[name][2:] == NEW).all() for name in ("a", "b", "ab"))
    assert maps["n#9"].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("changed", "kept"), [(False, True), (True, False)])
def test_a_hashed_cross_is_carried_only_while_its_parts_keep_their_ids(changed, kept):
    old = spec(["x", "z"], ["y"], [("x", "y")], buckets=7)
    new = spec(["a", "x", "z"] if changed else ["x", "z"], ["y"], [("x", "y")], buckets=7)
    assert id_maps(*old, *new)["ab"][2:].tolist() == (list(range(2, 9)) if kept else [NEW] * 7)


EDGES = st.lists(st.floats(-9, 9, width=32), max_size=5, unique=True)  # a double between any two: the middle


@given(EDGES, EDGES.filter(len))
@settings(deadline=None)
def test_a_bin_is_what_held_its_middle(old, new):
    old, new = sorted(old), sorted(new)
    found = bin_map(old, new)
    assert len(found) == len(new) + 1
    for place, (left, right) in enumerate(pairwise(new), start=1):
        assert found[place] == bin_ids(np.array([left + (right - left) / 2]), old)[0]
    assert bin_map(new, new)[1:-1].tolist() == list(range(3, len(new) + 2))
    assert (np.diff(found) >= 0).all()


def test_a_single_bin():
    assert (bin_map([], []).tolist(), bin_map([1.0], []).tolist()) == ([2], [NEW])
