"""Laws of drawing: what may be drawn, how often, and by what it is decided."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from contracts.artifacts import DRAWS, ITEM, ROW
from pipelines.negatives.catalogue import Catalogue, raising
from pipelines.negatives.draw import EXHAUSTED, NEWCOMER, PICK, REPEAT, RETRIEVED, WANTED, Drawing, draw, uniform
from pipelines.negatives.neighbours import NEAREST, Neighbours
from pipelines.windows.publish_clock import AT, ENTER

USERS, ITEMS, TAKES, COUNT = 12, 30, 400, 5
SHARE, NEAR = 0.4, 3


def log(seed: int = 3, takes: int = TAKES, items: int = ITEMS) -> pa.Table:
    """Heavy-tailed takes at whole moments, several of them at the same one; the group is `user`."""
    random = np.random.default_rng(seed)
    item = np.minimum(random.geometric(0.12, takes) - 1, items - 1)
    return entered(pa.table({
        ROW: random.integers(-(2**62), 2**62, takes), "user": random.integers(0, USERS, takes),
        ITEM: [f"i{number}" for number in item], AT: np.sort(random.integers(0, takes // 2, takes)),
        WANTED: np.ones(takes, dtype=bool),
    }))


def entered(table: pa.Table) -> pa.Table:
    """Every take counts a microsecond later."""
    return table.append_column(ENTER, pa.array(table.column(AT).to_numpy() + 1))


def catalogue(table: pa.Table, power: float = 0.0) -> Catalogue:
    group = np.unique(table.column(ITEM).to_pylist(), return_inverse=True)[1]
    return Catalogue.of(raising(table, group, power))


def drawing(seed: int = 1, power: float = 0.0, repeat: bool = False, candidates: float = 0.0) -> Drawing:
    return Drawing(folder=Path(), seed=seed, per_positive=COUNT, power=power, repeat=repeat, candidates=candidates)


def drawn(table: pa.Table, settings: Drawing) -> pa.Table:
    known = catalogue(table, settings.power)
    return draw(table, table.column("user").to_numpy(), known, settings,
                ring(known) if settings.candidates else None)


def ring(known: Catalogue) -> Neighbours:
    """One fit, at the midnight that begins the log: i5 is near to i6, i7 and i8, as far as they were there by then."""
    names = known.names.to_pylist()
    number = {name: place for place, name in enumerate(names) if known.first[place] <= 0}
    nearest = np.full((1, len(names), NEAREST), -1, np.int32)
    for place, name in enumerate(names):
        near = [number.get(f"i{(int(name[1:]) + step) % ITEMS}", -1) for step in range(1, NEAR + 1)]
        near = [other for other in near if other >= 0]
        nearest[0, place, : len(near)] = near
    return Neighbours(np.array([0]), nearest)


def later_log() -> pa.Table:
    """All items but the last five were there before the day of the log began."""
    table = log()
    before = pa.table({ROW: np.arange(ITEMS - 5), "user": np.full(ITEMS - 5, USERS),
                       ITEM: [f"i{number}" for number in range(ITEMS - 5)], AT: np.full(ITEMS - 5, -5),
                       WANTED: np.zeros(ITEMS - 5, bool)})
    return pa.concat_tables([entered(before), table])


def by_row(table: pa.Table) -> dict[int, tuple[int, str, int]]:
    """Row -> user, item, moment."""
    return {row["_row"]: (row["user"], row[ITEM], row[AT]) for row in table.to_pylist()}


@pytest.mark.parametrize("power", [0.0, 0.75, 1.0])
@pytest.mark.parametrize("repeat", [False, True])
@pytest.mark.parametrize("candidates", [0.0, SHARE])
def test_nothing_is_drawn_that_the_user_had_or_that_was_not_there(
    power: float, repeat: bool, candidates: float
) -> None:
    table = later_log()
    found = drawn(table, drawing(power=power, repeat=repeat, candidates=candidates)).to_pylist()
    events = by_row(table)
    assert any(row[RETRIEVED] for row in found) == bool(candidates)
    first = {item: min(at for _, other, at in events.values() if other == item) for _, item, _ in events.values()}
    assert sum(row[PICK] > 0 for row in found) > TAKES
    for row in found:
        user, own, at = events[row[ROW]]
        mine = {item for who, item, when in events.values() if who == user and (when == at if repeat else when <= at)}
        if row[PICK] > 0:
            assert row[ITEM] not in mine
        else:
            assert row[ITEM] == own
        if row[PICK] >= 0:
            assert first[row[ITEM]] < at


@pytest.mark.parametrize("repeat", [False, True])
def test_every_take_is_an_example_with_all_its_rows_or_none_for_a_reason(repeat: bool) -> None:
    table = log()
    events = by_row(table)
    picks: dict[int, list[int]] = {}
    for row in drawn(table, drawing(repeat=repeat)).to_pylist():
        picks.setdefault(row[ROW], []).append(row[PICK])
    assert picks.keys() == events.keys()
    first = {item: min(at for _, other, at in events.values() if other == item) for _, item, _ in events.values()}
    for row, found in picks.items():
        user, item, at = events[row]
        equals = [other for other, (who, what, when) in events.items() if (who, what) == (user, item)
                  and (when == at if repeat else True)]
        earliest = min(equals, key=lambda other: (events[other][2], other))
        expected = [REPEAT] if row != earliest else [NEWCOMER] if first[item] >= at else list(range(COUNT + 1))
        assert sorted(found) == expected or found == [EXHAUSTED]


def test_only_wanted_takes_are_answered_and_the_same_as_among_all() -> None:
    table, settings = log(), drawing()
    some = np.arange(TAKES) % 3 == 0
    part = table.set_column(table.column_names.index(WANTED), WANTED, pa.array(some))
    rows = set(table.column(ROW).filter(pa.array(some)).to_pylist())
    whole = [row for row in drawn(table, settings).to_pylist() if row[ROW] in rows]
    assert sorted(map(str, drawn(part, settings).to_pylist())) == sorted(map(str, whole))


@pytest.mark.parametrize(("power", "candidates"), [(0.0, 0.0), (0.75, 0.0), (0.0, SHARE)])
def test_order_and_company_of_rows_change_nothing_and_the_seed_everything(power: float, candidates: float) -> None:
    table, settings = later_log(), drawing(power=power, candidates=candidates)
    known = catalogue(table, power)
    near = ring(known) if candidates else None
    order = pa.array(np.random.default_rng(0).permutation(len(table)))
    shuffled = table.take(order)
    parts = [table.filter(pa.array(table.column("user").to_numpy() % 2 == half)) for half in (0, 1)]
    apart = [draw(part, part.column("user").to_numpy(), known, settings, near) for part in parts]
    expected = sorted(map(str, drawn(table, settings).to_pylist()))
    assert sorted(map(str, drawn(shuffled, settings).to_pylist())) == expected
    assert sorted(map(str, pa.concat_tables(apart).to_pylist())) == expected
    again = drawn(table, drawing(seed=2, power=power, candidates=candidates)).to_pylist()
    other = [str(row) for row in again if row[PICK] > 0]
    assert len(set(other) & set(expected)) < 0.3 * len(other)


def test_what_comes_later_changes_nothing_of_what_was_drawn() -> None:
    table = log()
    early = table.filter(pa.array(table.column(AT).to_numpy() < TAKES // 4))
    rows = set(early.column(ROW).to_pylist())
    whole = sorted(str(row) for row in drawn(table, drawing(power=0.75)).to_pylist() if row[ROW] in rows)
    assert sorted(map(str, drawn(early, drawing(power=0.75)).to_pylist())) == whole


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_items_are_drawn_as_often_as_draws_says(power: float) -> None:
    """Four thousand users, each with three items of before, take the same fourth one at the end."""
    others, asks = log(takes=500), 4000
    later, had = 510, ["i0", "i3", "i4"]
    users = np.repeat(np.arange(1, asks + 1), 4)
    last = np.arange(4 * asks) % 4 == 3
    asking = entered(pa.table({
        ROW: np.arange(4 * asks) * 7919, "user": users, ITEM: [*had, "i1"] * asks,
        AT: np.where(last, later, later - 5), WANTED: last,
    }))
    found = draw(asking, users, catalogue(others, power), drawing(power=power))
    rows = [row for row in found.to_pylist() if row[PICK] > 0]
    assert len(rows) == asks * COUNT
    counts = {item: sum(row[ITEM] == item for row in rows) for item in {row[ITEM] for row in rows}}
    expected = {row[ITEM]: row[DRAWS] for row in rows}
    assert sum(expected.values()) == pytest.approx(COUNT, rel=1e-9)
    assert not counts.keys() & {*had, "i1"}
    for item, count in counts.items():
        mean = asks * expected[item]
        assert abs(count - mean) < 5 * np.sqrt(mean) + 1
    if power == 0:
        assert len(set(expected.values())) == 1


def test_candidates_are_drawn_as_often_as_draws_says_and_the_others_make_up_the_rest() -> None:
    """Four thousand users had i0, i3 and i4; near to these and free are i1, i2, i5, i6 and i7, and i2 is taken."""
    asks, had = 4000, ["i0", "i3", "i4"]
    before = entered(pa.table({ROW: np.arange(ITEMS), "user": np.zeros(ITEMS, np.int64),
                               ITEM: [f"i{n}" for n in range(ITEMS)], AT: np.full(ITEMS, -5),
                               WANTED: np.zeros(ITEMS, bool)}))
    users, last = np.repeat(np.arange(1, asks + 1), 4), np.arange(4 * asks) % 4 == 3
    asking = entered(pa.table({
        ROW: 1000 + np.arange(4 * asks) * 7919, "user": users, ITEM: [*had, "i2"] * asks,
        AT: np.where(last, 50, 40), WANTED: last}))
    found = drawn(pa.concat_tables([before, asking]), drawing(candidates=SHARE)).to_pylist()
    rows = [row for row in found if row[PICK] > 0]
    assert len(rows) == asks * COUNT
    expected, even = {row[ITEM]: row[DRAWS] for row in rows}, COUNT * (1 - SHARE) / (ITEMS - 4)
    assert sum(expected.values()) == pytest.approx(COUNT, rel=1e-9)
    near = {"i1", "i5", "i6", "i7"}
    for item, rate in expected.items():
        assert rate == pytest.approx(even + (COUNT * SHARE / len(near) if item in near else 0), rel=1e-9)
        count = sum(row[ITEM] == item for row in rows)
        assert abs(count - asks * rate) < 5 * np.sqrt(asks * rate)
    assert {row[ITEM] for row in rows if row[RETRIEVED]} == near
    [positive] = {row[DRAWS] for row in found if row[PICK] == 0}
    assert positive == pytest.approx(even + COUNT * SHARE / len(near), rel=1e-9)


def test_who_has_no_candidates_is_drawn_for_as_if_there_were_none() -> None:
    table = log()
    known, user = catalogue(table), table.column("user").to_numpy()
    nobody = Neighbours(np.zeros(0, np.int64), np.zeros((0, len(known.names), NEAREST), np.int32))
    found = draw(table, user, known, drawing(candidates=SHARE), nobody)
    assert found.equals(drawn(table, drawing()))


def test_a_user_who_lacks_one_item_gets_it_and_one_who_lacks_none_gets_nothing() -> None:
    """Both take 60 of 61 and 60 of 60 items that were there, so that chance alone would hardly find the last one."""
    others = pa.table({ROW: np.arange(61), ITEM: [f"i{n}" for n in range(61)], AT: np.zeros(61, np.int64),
                       WANTED: np.zeros(61, bool), "user": np.zeros(61, np.int64)})
    rows = [(100 + n, f"i{n}", 10 + n, 1) for n in range(60)]
    rows += [(200 + n, f"i{n}", 10 + n, 2) for n in range(61)]
    row, item, at, user = zip(*rows, strict=True)
    takers = pa.table({ROW: row, ITEM: item, AT: at, WANTED: np.ones(len(rows), bool), "user": user})
    found = drawn(entered(pa.concat_tables([others, takers])), drawing()).to_pylist()
    last = {row: [one for one in found if one[ROW] == row] for row in (159, 260)}
    assert [one[ITEM] for one in last[159] if one[PICK] > 0] == ["i60"] * COUNT
    assert [one[PICK] for one in last[260]] == [EXHAUSTED]


def test_chances_are_even_and_told_apart_by_each_number() -> None:
    rows = np.arange(20_000) - 10_000
    one = uniform(1, rows, np.ones_like(rows), 0)
    assert 0 <= one.min() < one.max() < 1
    assert np.histogram(one, 20, (0, 1))[0].std() < 100
    for other in (uniform(2, rows, np.ones_like(rows), 0), uniform(1, rows, np.full_like(rows, 2), 0),
                  uniform(1, rows, np.ones_like(rows), 1)):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.05
