"""What users did before and how items fared: counters, a sequence, groups of items, as text of a configuration.

Bare ids tell little of a user or an item that is new; their groups do, and what is known of them so far.
"""

from __future__ import annotations

import json
import math

from sluice.init.column_types import Column
from sluice.init.field_guess import GuessedField
from sluice.init.role_guess import Guess
from sluice.init.table_text import comment, text_value

DAY = 86_400.0
SEQUENCE, TAKEN, MOST_GROUPS, SMALL_CATALOGUE, FEW_USERS = 20, 50, 2, 5000, 2000
REPEATED = 2.0  # rows a user has on average


def history_text(guess: Guess) -> str:
    """Empty where the log has no users and items with times."""
    if guess.time is None or guess.user is None or guess.item is None:
        return ""
    return _of_positives(guess) if guess.label.positives_alone else _of_labels(guess)


def free_name(guess: Guess, wanted: str) -> str:
    """For a field that is made, one that no column and no field has."""
    names = {column.plain.lower() for column in guess.columns} | {field.name.lower() for field in guess.all_fields}
    return wanted if wanted not in names else f"{wanted}_derived"


def _of_positives(guess: Guess) -> str:
    assert guess.item is not None
    last = comment("What the user took last, as of the last midnight.")
    often = comment("How often the item was taken, as of the last midnight.")
    fields = last + _sequence(free_name(guess, "last_taken"), guess.item, TAKEN) + often + _counter(
        free_name(guess, "times_taken"), "item", guess.item, ("7d", "30d"), ("count",))
    return fields + _crosses(guess) + _pre_ranker(guess)


def _of_labels(guess: Guess) -> str:
    assert guess.user is not None
    assert guess.item is not None
    windows, publish = _windows(guess)
    text = ""
    if publish:
        text += comment("A log of few days: what is counted is published every hour, not every midnight.")
        text += f'[features]\npublish_every = "{publish}"\n\n'
    text += comment("How often the item was shown so far and with what success, in short and in all.")
    text += _counter(free_name(guess, "item_history"), "item", guess.item, windows)
    if len(guess.user.known) >= REPEATED * len(guess.user.distinct):
        text += comment("The same of the user.")
        text += _counter(free_name(guess, "user_history"), "user", guess.user, windows)
        text += comment("What the user liked last.")
        text += _sequence(free_name(guess, "last_liked"), guess.item, SEQUENCE)
    for field in _groups(guess):
        text += comment(f"The same of all items of one {field.name}: it speaks for items that are new.")
        text += _counter(free_name(guess, f"{field.name}_history"), "item", field.column, windows, name=field.name)
    return text + _crosses(guess) + _pre_ranker(guess)


def _windows(guess: Guess) -> tuple[tuple[str, ...], str]:
    """Windows of counters for a log of so many days, and how often they are published, where not daily."""
    assert guess.time is not None
    assert guess.time.moment is not None
    read = [moment for value in guess.time.known if (moment := guess.time.moment(value)) is not None]
    days = math.ceil((max(read) - min(read)) / DAY) if read else 1
    if guess.label.clicks is not None and guess.label.clicks.window == "1d":  # a rate needs a longer window
        return ("2d" if days < 15 else "7d", f"{max(days, 3)}d"), ""
    if days < 4:
        return ("6h", f"{max(days, 1)}d"), "1h"
    return (("1d" if days < 15 else "7d"), f"{days}d"), ""


def _groups(guess: Guess) -> list[GuessedField]:
    """Categories of items that many items share."""
    assert guess.item is not None
    items = len(guess.item.distinct)
    found = [field for field in guess.all_fields if field.side == "item" and field.kind == "categorical"
             and field.column is not guess.item and field.derive is None
             and 3 <= len(field.column.distinct) <= min(items / 3, 1000)]
    return found[:MOST_GROUPS]


def _crosses(guess: Guess) -> str:
    """Crosses of what a user always has name the user: of few users they promise in the search what new ones break."""
    assert guess.user is not None
    users = len(guess.user.distinct)
    if users > FEW_USERS:
        return ""
    why = (f"{users} users in the sample: crosses of what a user always has would name the user, and tell nothing of "
           "new ones. budget = 18 searches them all the same.")
    return f"{comment(why)}[crosses]\nbudget = 0\n\n"


def _pre_ranker(guess: Guess) -> str:
    """Where the catalogue is small, a search of the fields that pay for themselves costs more than it can save."""
    assert guess.item is not None
    items = len(guess.item.distinct)
    if items > SMALL_CATALOGUE:
        return ""
    why = (f"{items} items in the sample: few enough that pre-ranking by the towers loses little. \"fscd\" looks for "
           "the fields that pay for themselves, and takes as long as all else.")
    return f'{comment(why)}[prerank]\nkind = "towers"\n'


def _sequence(name: str, item: Column, length: int) -> str:
    return (f'[[fields]]\nname = "{name}"\nkind = "sequence"\nside = "user"\nof = {text_value(item.plain)}\n'
            f"length = {length}\n\n")


def _counter(
    field: str, side: str, column: Column, windows: tuple[str, ...], statistics: tuple[str, ...] = (),
    name: str | None = None,
) -> str:
    only = f"statistics = {json.dumps(list(statistics))}\n" if statistics else ""
    by = text_value(name or column.plain)
    return (f'[[fields]]\nname = "{field}"\nkind = "counter"\nside = "{side}"\nby = [{by}]\n'
            f"windows = {json.dumps(list(windows))}\n{only}\n")
