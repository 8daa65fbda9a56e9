"""The laws of a slate under caps and pins, for any candidates."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contracts.config.rules import Rule
from contracts.features.encoding import Encoded
from serving.bundle.filter_column import from_raw
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.candidates import PIN, Candidates
from serving.request.given_items import GivenItems
from serving.rules.rules import ActiveRule, ActiveRules
from serving.rules.slate_order import NOBODY, Cap, Room, caps_of, fill

CANDIDATES = st.lists(st.tuples(st.sampled_from(["a", "b", "c", None]), st.sampled_from([0, 0, 0, 0, 1, 2, 9])),
                      max_size=20)


def candidates_of(told: list[tuple[str | None, int]]) -> Candidates:
    rows = np.arange(len(told))
    return Candidates(rows, np.zeros(len(told), dtype=np.int8), {PIN: np.array([pin for _, pin in told], dtype=float)})


@given(CANDIDATES, st.integers(1, 4), st.integers(1, 12))
def test_caps_hold_pins_stand_and_the_order_of_the_others_is_kept(
    told: list[tuple[str | None, int]], most: int, slots: int
) -> None:
    """Candidates are best first as they come."""
    candidates, values = candidates_of(told), [value for value, _ in told]
    order, _ = fill(np.arange(len(told)), candidates, Room([Cap(values, most)]), slots)
    found = order.tolist()
    assert len(found) == len(set(found)) <= slots
    pinned = [place for place in found if told[place][1]]
    free = [place for place in found if not told[place][1]]
    assert free == sorted(free)
    assert len(pinned) == min(sum(pin > 0 for _, pin in told), slots)
    counts = Counter(values[place] for place in pinned)
    for place in range(len(told)):  # greedy, candidate by candidate
        room = values[place] is None or counts[values[place]] < most
        taken = place in free
        if not told[place][1] and len(free) < slots - len(pinned):
            assert taken == room
        counts[values[place]] += taken
    for at, place in enumerate(found, 1):
        if told[place][1]:  # at its position, unless an earlier pin holds it or the slate is shorter
            before = [other for other in found[: at - 1] if not told[other][1]]
            assert at == told[place][1] or (at > told[place][1]) or before == free


@given(CANDIDATES, st.integers(1, 12))
def test_without_caps_and_pins_a_slot_is_beaten_by_the_next_one(told: list[tuple[str | None, int]], slots: int) -> None:
    candidates = candidates_of([(value, 0) for value, _ in told])
    order, runners = fill(np.arange(len(told)), candidates, Room([]), slots)
    assert order.tolist() == list(range(min(slots, len(told))))
    assert runners.tolist() == [place + 1 if place + 1 < len(told) else NOBODY for place in order.tolist()]


@given(CANDIDATES, st.integers(1, 3), st.integers(1, 8))
def test_the_runner_up_is_who_comes_when_the_winner_is_gone(
    told: list[tuple[str | None, int]], most: int, slots: int
) -> None:
    told = [(value, 0) for value, _ in told]
    values, candidates = [value for value, _ in told], candidates_of(told)
    order, runners = fill(np.arange(len(told)), candidates, Room([Cap(values, most)]), slots)
    for slot, (winner, runner) in enumerate(zip(order.tolist(), runners.tolist(), strict=True)):
        others = np.array([place for place in range(len(told)) if place != winner], dtype=np.int64)
        without = fill(others, candidates, Room([Cap(values, most)]), slots).order.tolist()
        assert without[:slot] == order.tolist()[:slot]
        assert (without[slot] if len(without) > slot else NOBODY) == runner


def test_a_flag_of_an_item_that_the_request_describes_is_the_value_that_others_have(loaded: LoadedBundle) -> None:
    """Else a cap on a flag would let twice as many in."""
    items = len(loaded.items)
    bundle = replace(loaded, filters={"sponsored": from_raw([True] * items, "sponsored")})
    described = GivenItems(first=items, keys=("own",), described=({"sponsored": True},),
                           inputs=Encoded(np.zeros((1, 1), dtype=np.int32), np.zeros((1, 1), dtype=np.float32)),
                           vectors=np.zeros((1, 1)), bids=np.ones(1))
    candidates = Candidates(np.array([0, items]), np.zeros(2, dtype=np.int8), {}, given=described)
    active = ActiveRules(caps=(ActiveRule(0, Rule(name="few", cap="sponsored", most=1), None),))
    assert caps_of(active, candidates, bundle) == [Cap(["true", "true"], 1)]
