"""What people did, user by user in the order they did it: the log of positives alone, as retrieval models read it.

Items are numbered as vocabularies number them: 0 is padding, 1 is unknown, known items follow from FIRST_ID on. Users
are rows, from 0 on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contracts.errors import DataError
from contracts.features.feature_spec import FIRST_ID, UNKNOWN
from models.interactions.told_events import Told, gap_ids


@dataclass(frozen=True)
class Interactions:
    """Compressed rows: `items` [A] int64 and `times` [A] int64 (microseconds, or None) of user u lie at
    offsets[u]:offsets[u + 1]; `table` is the size of an embedding of all items, 0 and 1 included. `told` of the actions
    is what models read beside the items, `asked` [users] (microseconds, 0 unknown) when somebody asks of each user.

    Raises DataError where the arrays contradict each other.
    """

    offsets: np.ndarray
    items: np.ndarray
    table: int
    times: np.ndarray | None = None
    told: Told | None = None
    asked: np.ndarray | None = None

    def __post_init__(self) -> None:
        if len(self.offsets) < 1 or self.offsets[0] != 0 or (np.diff(self.offsets) < 0).any():
            raise DataError("offsets of interactions must start at 0 and never fall")
        if self.offsets[-1] != len(self.items) or (self.times is not None and len(self.times) != len(self.items)):
            raise DataError(f"offsets end at {self.offsets[-1]}, there are {len(self.items)} items and "
                            f"{len(self.items) if self.times is None else len(self.times)} times; all must agree")
        if len(self.items) and not FIRST_ID <= self.items.min() <= self.items.max() < self.table:
            raise DataError(f"items {self.items.min()} to {self.items.max()} do not lie in {FIRST_ID} to "
                            f"{self.table - 1}")

    @property
    def users(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Actions of each user [users]."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> np.ndarray:
        """The user of each action [A]."""
        return np.repeat(np.arange(self.users), self.lengths)

    def of(self, user: int) -> np.ndarray:
        """The items of one user, oldest first."""
        return self.items[self.offsets[user]:self.offsets[user + 1]]

    def counts(self) -> np.ndarray:
        """How often each item was taken [table]."""
        return np.bincount(self.items, minlength=self.table)

    def where(self, kept: np.ndarray) -> Interactions:
        """The actions of a mask [A], of the same users, who may be left without any."""
        lengths = np.bincount(self.owners[kept], minlength=self.users)
        return self._taken(lengths, kept, self.asked)

    def rows(self, users: np.ndarray) -> Interactions:
        """These users alone, in this order."""
        lengths = self.lengths[users]
        places = np.repeat(self.offsets[users] - offsets_of(lengths)[:-1], lengths) + np.arange(lengths.sum())
        return self._taken(lengths, places, None if self.asked is None else self.asked[users])

    def _taken(self, lengths: np.ndarray, places: np.ndarray, asked: np.ndarray | None) -> Interactions:
        return Interactions(offsets_of(lengths), self.items[places], self.table,
                            None if self.times is None else self.times[places],
                            None if self.told is None else self.told.at(places), asked)

    def latest(self, length: int) -> Interactions:
        """At most the last `length` actions of each user."""
        from_end = np.repeat(self.offsets[1:], self.lengths) - np.arange(len(self.items))
        return self.where(from_end <= length)

    def padded(self, users: np.ndarray, width: int) -> np.ndarray:
        """[U, width]: the last `width` items of each user from the left, 0 behind them."""
        part = self.rows(users).latest(width)
        out = np.zeros((len(users), width), np.int64)
        out[np.arange(width) < part.lengths[:, None]] = part.items
        return out

    def padded_events(self, users: np.ndarray, width: int) -> np.ndarray:
        """[U, width, E]: what is told of the same actions; nothing, E = 0, of a log that tells nothing."""
        part = self.rows(users).latest(width)
        inputs = part._event_inputs()
        out = np.zeros((len(users), width, inputs.shape[1]), np.int64)
        out[np.arange(width) < part.lengths[:, None]] = inputs
        return out

    def _event_inputs(self) -> np.ndarray:
        """int64 [A, E]."""
        if self.told is None:
            return np.zeros((len(self.items), 0), np.int64)
        if not self.told.gaps:
            return self.told.values
        if self.times is None:
            return np.column_stack([np.full(len(self.items), UNKNOWN), self.told.values])
        until = np.append(self.times[1:], 0)
        some = self.lengths > 0
        until[self.offsets[1:][some] - 1] = 0 if self.asked is None else self.asked[some]
        return np.column_stack([gap_ids(self.times, until), self.told.values])


def offsets_of(lengths: np.ndarray) -> np.ndarray:
    """[3, 0, 2] -> [0, 3, 3, 5]."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def from_lists(lists: Sequence[Sequence[int]], table: int) -> Interactions:
    """One list of items, oldest first, for each user."""
    items = np.array([item for one in lists for item in one], np.int64)
    return Interactions(offsets_of(np.array([len(one) for one in lists], np.int64)), items, table)


def from_columns(
    users: np.ndarray, items: np.ndarray, times: np.ndarray | None = None, gaps: bool = False,
    columns: Sequence[np.ndarray] = (),
) -> Interactions:
    """Columns of a log, of any type that sorts. Actions of one time keep the order of the log; without times all do.
    Models are told the `gaps` between the times, and what `columns` [A] hold."""
    known_users, user = np.unique(users, return_inverse=True)
    known_items, item = np.unique(items, return_inverse=True)
    keys = (user,) if times is None else (times, user)
    order = np.lexsort(keys)  # stable, the last key first
    lengths = np.bincount(user, minlength=len(known_users))
    return Interactions(offsets_of(lengths), item[order] + FIRST_ID, len(known_items) + FIRST_ID,
                        None if times is None else np.asarray(times)[order].astype(np.int64),
                        _told(gaps, [column[order] for column in columns], len(items)))


def _told(gaps: bool, columns: Sequence[np.ndarray], actions: int) -> Told | None:
    if not gaps and not columns:
        return None
    values = np.zeros((actions, len(columns)), np.int64)
    sizes: list[int] = []
    for place, column in enumerate(columns):
        known, found = np.unique(column, return_inverse=True)
        values[:, place] = found + FIRST_ID
        sizes.append(len(known) + FIRST_ID)
    return Told(gaps, values, tuple(sizes))


def read_lines(path: Path) -> Interactions:
    """One line a user, the user's number and then the items in order, as the public sequence benchmarks are stored.

    Raises DataError naming the line that is not numbers.
    """
    return _numbered([items for _, items in user_lines(path)])


def user_lines(path: Path) -> list[tuple[int, list[int]]]:
    """User and items of each line. Raises as `read_lines` does."""
    with path.open(encoding="utf-8") as lines:
        read = (_numbers(line, path, number) for number, line in enumerate(lines, start=1))
        found = [(values[0], values[1:]) for values in read if values]
    if not any(items for _, items in found):
        raise DataError(f"{path} holds no actions; one line a user is read: the user, then the items in order")
    return found


def _numbers(line: str, path: Path, number: int) -> list[int]:
    try:
        return [int(word) for word in line.split()]
    except ValueError as error:
        raise DataError(f"{path}, line {number}: {error}; a line is a user and items, whole numbers with blanks "
                        "between them") from error


def _numbered(lists: Iterable[list[int]]) -> Interactions:
    lists = list(lists)
    known, item = np.unique(np.array([item for one in lists for item in one]), return_inverse=True)
    lengths = np.array([len(one) for one in lists], np.int64)
    return Interactions(offsets_of(lengths), item + FIRST_ID, len(known) + FIRST_ID)
