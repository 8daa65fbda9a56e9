from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from contracts.errors import DataError
from sluice.init.column_types import Column
from sluice.init.role_guess import Guess, guess

ROWS = 400
RANDOM = np.random.default_rng(0)
USERS = [f"u{u}" for u in RANDOM.integers(0, 30, ROWS)]
CLICKS = [int(c) for c in RANDOM.integers(0, 2, ROWS)]
ITEMS = [int(i) for i in RANDOM.integers(0, 20, ROWS)]


def column(name: str, values: list[Any], kind: Any = "text", why: str = "", separator: str | None = None) -> Column:
    return Column(name, name, kind, values, separator=separator, why=why)


def log(*more: Column) -> Guess:
    return guess([column("clicked", CLICKS, "integer"), *more], None)


def fields(found: Guess) -> dict[str, tuple[str, str]]:
    return {one.column.name: (one.kind, one.side) for one in found.fields}


def test_users_items_their_own_columns_times_and_positions_are_told() -> None:
    times = column("shown_at", [f"2026-01-{1 + row // 20:02d}" for row in range(ROWS)], "time")
    found = log(
        column("user_id", USERS), column("item_id", ITEMS, "integer"), times,
        column("city", [f"c{len(user)}{user[-1]}" for user in USERS]),
        column("price", [item * 1.5 for item in ITEMS], "number"),
        column("device", [["phone", "tv"][row % 2] for row in range(ROWS)]),
        column("position", [1 + row % 5 for row in range(ROWS)], "integer"),
    )
    roles = (found.user, found.item, found.time, found.position)
    assert [role.name if role else "" for role in roles] == ["user_id", "item_id", "shown_at", "position"]
    assert fields(found) == {
        "user_id": ("categorical", "user"), "item_id": ("categorical", "item"), "city": ("categorical", "user"),
        "price": ("numeric", "item"), "device": ("categorical", "context"),
    }


@pytest.mark.parametrize(
    ("one", "kind"),
    [
        (column("x", [float(v) for v in RANDOM.normal(size=ROWS)], "number"), "numeric"),
        (column("x", [int(v) for v in RANDOM.integers(0, 500, ROWS)], "integer"), "numeric"),
        (column("x", [int(v) for v in RANDOM.integers(0, 5, ROWS)], "integer"), "categorical"),
        (column("shop_id", [int(v) for v in RANDOM.integers(0, 100, ROWS)], "integer"), "categorical"),
        (column("x", [bool(v) for v in RANDOM.integers(0, 2, ROWS)], "boolean"), "categorical"),
        (column("x", [["a", "b"], ["c"]] * (ROWS // 2), "list", separator="|"), "multi_valued"),
    ],
)
def test_kinds_are_told_by_the_values(one: Column, kind: str) -> None:
    assert log(one).fields[0].kind == kind


def test_heavy_tails_are_scaled_by_the_logarithm() -> None:
    found = log(column("gain", [0.0] * 390 + [5000.0] * 10, "number"), column("age", [40.0, 41.0] * 200, "number"))
    assert [one.log for one in found.fields] == [True, False]


@pytest.mark.parametrize(
    ("one", "reason"),
    [
        (column("x", [None] * ROWS), "no row of the sample has a value"),
        (column("x", ["same"] * ROWS), "the same value"),
        (column("x", [f"n{row}" for row in range(ROWS)]), "identifier"),
        (column("x", list(range(ROWS)), "integer"), "row number"),
        (column("x", ["word " * 40, "words " * 40] * (ROWS // 2)), "long free text"),
        (column("signup", [f"2020-01-{1 + row % 28:02d}" for row in range(ROWS)], "time"), "not the event's"),
        (column("x", [{"a": row} for row in range(ROWS)], "other", "type struct"), "type struct"),
    ],
)
def test_what_is_no_field_is_left_out_with_its_reason(one: Column, reason: str) -> None:
    found = log(one, column("good", ["a", "b"] * (ROWS // 2)))
    assert list(found.left_out) == [one.name]
    assert reason in found.left_out[one.name]


def test_a_time_that_is_the_items_own_is_not_the_events_where_there_is_another() -> None:
    released = column("release_date", [f"2019-{1 + item % 12:02d}-{1 + item:02d}" for item in ITEMS], "time")
    shown = column("at", [f"2026-01-{1 + row // 20:02d}" for row in range(ROWS)], "time")
    others = (column("user_id", USERS), column("item_id", ITEMS, "integer"))
    assert log(*others, released, shown).time is shown
    assert log(*others, released).time is released


def test_a_user_who_comes_once_does_not_own_the_time() -> None:
    """An order's customer, of several rows."""
    orders = [row // 3 for row in range(ROWS)]
    bought = column("bought", [f"2026-01-{1 + order // 8 % 28:02d} {order % 24:02d}:00:00" for order in orders], "time")
    shipped = column("shipped", [f"2026-02-{1 + row % 28:02d} {row % 24:02d}:00:00" for row in range(ROWS)], "time")
    customers = column("customer_id", [f"c{order}" for order in orders])
    assert log(customers, column("item_id", ITEMS, "integer"), bought, shipped).time is bought


def test_times_of_too_few_moments_make_no_windows() -> None:
    found = log(column("date", ["2026-01-05", "2026-01-06"] * (ROWS // 2), "time"), column("a", ["x", "y"] * 200))
    assert found.time is None
    assert "only 2 different ones" in found.notes["event_time"]


def test_a_table_of_a_label_alone_is_refused_with_what_was_left_out() -> None:
    with pytest.raises(DataError, match=r"x: every row.*at least one feature"):
        log(column("x", ["same"] * ROWS))


def test_a_user_who_is_missing_in_some_rows_is_the_user_all_the_same() -> None:
    users = [None if row % 30 == 7 else user for row, user in enumerate(USERS)]
    homes = [f"c{user[-1]}" for user in USERS]
    found = log(column("user_id", users), column("item_id", ITEMS, "integer"), column("home", homes))
    assert found.user is not None
    assert "14 rows (3.50%) without one: each such row is taken as a user of its own" in found.notes["user_id"]
    assert fields(found)["user_id"] == ("categorical", "user")
    assert fields(found)["home"] == ("categorical", "user")
    assert found.user in found.columns
    assert found.user.expression == (
        "coalesce(nullif(CAST(user_id AS STRING), ''), concat_ws('/', 'unknown', CAST(item_id AS STRING)))")


@pytest.mark.parametrize(("more", "reason"), [
    ([column("age", ITEMS, "integer")], "neither items nor times"),
    ([column("item_id", ITEMS, "integer")], "it tells the label"),
])
def test_a_user_whose_absence_tells_too_much_or_too_little_is_none(more: list[Column], reason: str) -> None:
    alone = reason.startswith("neither")
    users = [None if (row % 30 == 7 if alone else not click) else user
             for row, (user, click) in enumerate(zip(USERS, CLICKS, strict=True))]
    found = log(column("user_id", users), *more)
    assert found.user is None
    assert reason in found.notes["user_id"]


def test_few_rows_without_an_item_go_to_quarantine_and_many_make_it_none() -> None:
    for missing, taken in ((1, True), (20, False)):
        items = [None] * missing + ITEMS[missing:]
        found = log(column("user_id", USERS), column("item_id", items, "integer"))
        assert (found.item is not None) == taken
        assert ("they go to quarantine" in found.notes["item_id"]) == taken


PRICES = [0.1 + item / 10 for item in ITEMS]


@pytest.mark.parametrize(("name", "values", "taken"), [
    ("bid", PRICES, True), ("bid_price", PRICES, True), ("max_cpc", PRICES, True), ("price", PRICES, False),
    ("bid", [0.0, *PRICES[1:]], False), ("bid", [None, *PRICES[1:]], False),
])
def test_bids_beside_items_are_the_auctions_and_no_field(name: str, values: list[Any], taken: bool) -> None:
    item = column("ad_id", ITEMS, "integer")
    found = log(item, column(name, values, "number"))
    assert (found.bid is not None) == taken == (name not in fields(found)) == ("bid" in found.notes)
    assert guess([column("clicked", CLICKS, "integer"), column(name, values, "number")], None).bid is None  # no items


TIMES = column("bought_at", [f"2026-01-{1 + row // 20:02d}" for row in range(ROWS)], "time")
TAKES = [column("customer_id", USERS), column("product_id", ITEMS, "integer"), TIMES]


def test_who_took_what_and_when_without_a_label_is_a_log_of_positives_alone() -> None:
    found = guess([*TAKES, column("rank", [1 + row % 5 for row in range(ROWS)], "integer"),
                   column("bid", PRICES, "number"), column("channel", ["web", "app"] * (ROWS // 2))], None)
    assert found.label.expression is None
    assert found.label.repeat
    assert found.position is None
    assert found.bid is None
    assert {"customer_id", "product_id", "channel"} <= fields(found).keys()


def test_takes_that_do_not_repeat_are_told() -> None:
    once = [column("customer_id", [f"u{row // 20}" for row in range(ROWS)]),
            column("product_id", [row % 20 for row in range(ROWS)], "integer"), TIMES]
    assert not guess(once, None).label.repeat


@pytest.mark.parametrize("more", [
    [column("clicked", [0, 1] * (ROWS // 2), "integer")], [column("stars", [1, 2, 3, 4, 5] * (ROWS // 5), "integer")],
])
def test_a_label_or_a_rating_comes_before_positives_alone(more: list[Column]) -> None:
    assert guess([*TAKES, *more], None).label.expression is not None


@pytest.mark.parametrize("missing", range(3))
def test_without_user_item_or_time_a_label_is_needed(missing: int) -> None:
    with pytest.raises(DataError, match="there is no label"):
        guess([one for place, one in enumerate(TAKES) if place != missing], None)


@pytest.mark.parametrize(("user", "item", "other"), [
    ("listener", "song", "artist"), ("student_id", "lesson", "note"), ("Passenger", "destination", "note"),
    ("rider", "restaurant_id", "note"),
])
def test_users_and_items_are_called_by_what_they_are(user, item, other):
    """An artist is no item where there are songs, though its column stands first."""
    artists = column(other, [f"a{item % 7}" for item in ITEMS])
    liked = column("liked", CLICKS, "integer")
    found = guess([column(user, USERS), artists, column(item, ITEMS, "integer"), TIMES, liked], "liked")
    assert found.user is not None
    assert found.item is not None
    assert (found.user.name, found.item.name) == (user, item)
