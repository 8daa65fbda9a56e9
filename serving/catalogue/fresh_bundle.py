"""A loaded bundle whose items change while it is served: the same tables with room behind them, rows written in place.

    described anew      its row of every table, and its vector in the index (changing_index.py)
    new                 a row behind the bundle's
    withdrawn           not shown, wherever its vector lies
    bid                 its place in the bids, and one dimension of its vector
    stock               none left: not shown

The bundle's file is not written. A request under way while an item changes may see old inputs of it beside its new
vector; it is one item of one request. What a bundle of later data knows better is as the bundle has it:
descriptions of its own items that are not newer than its data, and bids that are not newer than the impression that its
own bid is of. That an item was withdrawn, or has run out, no bundle knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np

from contracts.config.stages import BID, STOCK
from contracts.errors import DataError
from contracts.shown import short, shown
from serving.bundle import item_index
from serving.bundle.filter_column import FilterColumn, as_text
from serving.bundle.item_index import ZERO_BID_SHARE
from serving.bundle.loaded_bundle import RETRIEVAL, LoadedBundle, RankTable
from serving.bundle.number_column import NumberColumn
from serving.catalogue.change import Change
from serving.catalogue.changing_filter import ChangingFilter
from serving.catalogue.changing_numbers import ChangingNumbers
from serving.catalogue.channels_of_stored import of_stored
from serving.catalogue.growing_items import GrowingItems
from serving.catalogue.item_columns import Described, ItemEncoder
from serving.catalogue.known_better import NOTHING, ON_ITS_WAY, later, left_unsaid
from serving.catalogue.table_room import with_last, with_room
from serving.catalogue.unshown_items import UnshownItems
from serving.changing_index.changing_index import ChangingIndex
from serving.request.query import ContextValue

LEAST_ROOM = 65_536
NumbersOf = Callable[[Sequence[str]], Sequence[Change]]


class FreshBundle:
    """`bundle` is what is to be served in place of the one loaded from `folder`; one thread applies changes. Bids and
    stock of items that the bundle does not know are let pass, and asked of `numbers_of` when such an item comes."""

    def __init__(self, loaded: LoadedBundle, folder: Path, numbers_of: NumbersOf = lambda items: ()) -> None:
        self._loaded, self._encoder, self._numbers_of = loaded, ItemEncoder(loaded), numbers_of
        self.items = GrowingItems(loaded.items, max(LEAST_ROOM, len(loaded.items)))
        size, width = self.items.size, loaded.item_vectors.shape[1]
        vectors = with_room(loaded.index.vectors, size)
        base = item_index.load(folder / RETRIEVAL / "index.faiss", vectors[: self.items.count],
                               loaded.settings.retrieve, writable=not loaded.index.exact)
        self.index, self._bid_column = ChangingIndex(base, vectors), width
        self._filters = {name: ChangingFilter(column, size) for name, column in loaded.filters.items()}
        self._created = loaded.settings.retrieve.created_field
        self._changed, self.unshown = np.zeros(size, dtype=bool), UnshownItems()
        self._present, self._stock = np.arange(size) < self.items.count, np.full(size, np.nan)
        known = loaded.manifest.metrics.data_until if loaded.manifest.metrics else None
        self._known_until = round(known.timestamp() * 1e6) if known else -1
        self.bundle = replace(
            loaded, items=self.items, item_vectors=vectors[:, :width],
            bids=None if loaded.bids is None else with_room(loaded.bids, size),
            index=replace(base, vectors=vectors, changing=self.index), neighbours=with_room(loaded.neighbours, size),
            item_part=None if loaded.item_part is None else with_room(loaded.item_part, size),
            rank_table=_grown(loaded.rank_table, size + 1), channels=of_stored(loaded.channels, self.items.count),
            shown=lambda: self.index.shown, changed=self._changed,
            listed={name: with_last(has, size + 1) for name, has in loaded.listed.items()})
        self._numbers = {STOCK: ChangingNumbers(NumberColumn(self._stock[:0]), self._stock)}
        for name, column in loaded.numbers.items():
            own = self.bundle.bids if name == BID else None
            values = _with_nothing_behind(column.values, size) if own is None else own
            self._numbers[name] = ChangingNumbers(column, values)
        filters = cast(Mapping[str, FilterColumn], self._filters)  # requests ask a filter for its sets alone
        self.bundle = replace(self.bundle, filters=filters, numbers=self._numbers)
        self._least_bid = self._smallest(loaded.bids)

    @property
    def changed_items(self) -> int:
        return int(np.count_nonzero(self._changed))

    @property
    def hidden_items(self) -> int:
        """Items that have a row and are not shown."""
        return self.items.count + self.items.added - self.index.shown.count

    def apply(self, changes: Sequence[Change]) -> None:
        """Requests that begin after this see all of them."""
        self.write(changes)
        self.publish()

    def write(self, changes: Sequence[Change]) -> None:
        """Who is shown, and what filters say, is as the next `publish` has it; vectors, bids and inputs are written."""
        described = [change for change in changes if change.kind == "item" and not change.withdraws]
        self.unshown.remove(change.item for change in changes if change.kind == "item")
        self._withdraw([change.item for change in changes if change.withdraws])
        new = self._new([change.item for change in described])
        unknown = self._describe(self._known(described))
        self._return([change.item for change in described], new)
        self._withdraw(unknown)
        self._set_bids([change for change in changes if change.kind == "bid"])
        self._set_stock({change.item: change.number for change in changes if change.kind == "stock"})

    def publish(self) -> None:
        for column in self._filters.values():
            column.publish()
        for numbers in self._numbers.values():
            numbers.publish()
        self.index.publish()
        self.unshown.publish()

    def _known(self, described: Sequence[Change]) -> list[Change]:
        """What is to be written of descriptions: where the bundle knows better its own one, if another is shown."""
        return [change if holds else left_unsaid(change)
                for change, row, holds in later(described, self._loaded.items, self._known_until)
                if holds or self._changed[row]]

    def _withdraw(self, items: Sequence[str]) -> None:
        rows = self._rows(items)
        self._present[rows] = False
        self._show(rows)

    def _return(self, items: Sequence[str], new: Sequence[str]) -> None:
        """Described items are shown, unless none is left; of `new` ones, what was said before they came."""
        rows = self._rows(items)
        self._present[rows] = True
        self._show(rows)
        if new:
            said = self._numbers_of(new)
            self._write_bids({change.item: change.number for change in said if change.kind == "bid"})
            self._set_stock({change.item: change.number for change in said if change.kind == "stock"})

    def _new(self, items: Sequence[str]) -> Sequence[str]:
        """Those without a row."""
        rows = self.items.rows(list(items)).tolist() if items else []
        return list(dict.fromkeys(item for item, row in zip(items, rows, strict=True) if row < 0))

    def _show(self, rows: np.ndarray) -> None:
        self.index.show(rows, self._present[rows] & ~(self._stock[rows] <= 0))

    def _rows(self, items: Sequence[str]) -> np.ndarray:
        """Of those that have one."""
        rows = self.items.rows(list(items)).astype(np.int64) if items else np.empty(0, dtype=np.int64)
        return rows[rows >= 0]

    def _describe(self, changes: Sequence[Change]) -> list[str]:
        """Those that cannot be shown and that the bundle lacks; its own ones are shown as it has them."""
        changes = self._with_room(changes)
        try:
            self._write(changes)
            return []
        except (DataError, TypeError, ValueError, ArithmeticError, LookupError) as error:
            if len(changes) > 1:  # by halves: the others are shown, and soon
                half = len(changes) // 2
                return [*self._describe(changes[:half]), *self._describe(changes[half:])]
            why = str(error) if isinstance(error, DataError) else f"{type(error).__name__}: {error}"
            self.unshown.add(changes[0].item, short(why, 200))
            row = self._loaded.items.row(changes[0].item)
            if row >= 0 and self._changed[row] and changes[0].value != NOTHING:
                self._describe([left_unsaid(changes[0])])
            return [] if row >= 0 else [changes[0].item]

    def _with_room(self, changes: Sequence[Change]) -> Sequence[Change]:
        """Those of items that have a row or can have one."""
        new = self._new([change.item for change in changes])
        if len(new) <= self.items.room:
            return changes
        left_out = dict.fromkeys(new[self.items.room :], self.items.used)
        for item, why in left_out.items():
            self.unshown.add(item, why)
        return [change for change in changes if change.item not in left_out]

    def _write(self, changes: Sequence[Change]) -> None:
        """All or nothing: what can fail is done before the first row is written."""
        if not changes:
            return
        keys, bundle = [change.item for change in changes], self.bundle
        stored = self._loaded.items.rows(keys).astype(np.int64)
        described = [change.values if row >= 0 else self._encoder.with_key(change.item, change.values)
                     for change, row in zip(changes, stored.tolist(), strict=True)]
        texts = self._texts_of_items(stored, described)
        numbers = self._numbers_of_items(stored, described, [change.event_time / 1e6 for change in changes])
        columns = self._encoder.columns(described, stored)
        rows = np.array([self._row(key) for key in keys], dtype=np.int64)
        bundle.items.ids[rows], bundle.items.dense[rows] = columns.inputs
        bundle.neighbours[rows[stored < 0]] = -1
        if columns.rank_part is not None and bundle.rank_table is not None:
            bundle.rank_table.rows[rows] = columns.rank_part
        if columns.prerank_part is not None and bundle.item_part is not None:
            bundle.item_part[rows] = columns.prerank_part
        for name, has in bundle.listed.items():
            has[rows] = self._loaded.listed[name][stored] | [name in said for said in described]
        for name, found in texts.items():
            for row, text in zip(rows.tolist(), found, strict=True):
                self._filters[name].put(row, text)
        for name, values in numbers.items():
            self._numbers[name].values[rows] = values
            self._numbers[name].put(rows)
        self._changed[rows] = True
        self.index.vectors[rows, : columns.vectors.shape[1]] = columns.vectors
        new = rows[stored < 0]
        if bundle.bids is not None:
            self.index.vectors[new, self._bid_column] = self._log_bids(bundle.bids[new])
            self._numbers[BID].put(new)
        self.index.put(rows)

    def _texts_of_items(self, stored: np.ndarray, described: Sequence[Described]) -> dict[str, list[str | None]]:
        """Of the columns of filters. Raises DataError where one is none."""
        return {name: [_text(name, said[name]) if name in said else column.stored_value(row) if row >= 0 else None
                       for row, said in zip(stored.tolist(), described, strict=True)]
                for name, column in self._filters.items()}

    def _numbers_of_items(
        self, stored: np.ndarray, described: Sequence[Described], times: Sequence[float]
    ) -> dict[str, list[float]]:
        """Of the columns of ranges. A new item that does not say when it came to be came when it was described. Raises
        DataError where one is none."""
        found = dict[str, list[float]]()
        for name in self._loaded.settings.retrieve.numbers:
            own = self._loaded.numbers[name].values
            others = times if name == self._created else [np.nan] * len(stored)
            kept = [own[row] if row >= 0 else other for row, other in zip(stored.tolist(), others, strict=True)]
            found[name] = [_number(name, said.get(name, one)) for said, one in zip(described, kept, strict=True)]
        return found

    def _row(self, key: str) -> int:
        row = self.items.row(key)
        return self.items.add(key) if row < 0 else row

    def _set_bids(self, changes: Sequence[Change]) -> None:
        """Where the bundle knows better its own one, if another is shown."""
        own, now, times = self._loaded.bids, self.bundle.bids, self._loaded.bid_times
        if own is not None and now is not None:
            known, lag = (self._known_until, 0) if times is None else (times, ON_ITS_WAY)
            told = later(changes, self._loaded.items, known, lag)
            self._write_bids({change.item: change.number if holds else float(own[row])
                              for change, row, holds in told if holds or now[row] != own[row]})

    def _write_bids(self, bids: dict[str, float]) -> None:
        if self.bundle.bids is None or not bids:
            return
        rows, values = self._placed(bids)
        self.bundle.bids[rows] = values
        self._numbers[BID].put(rows)
        self.index.set_column(rows, self._bid_column, self._log_bids(values))

    def _set_stock(self, stock: dict[str, float]) -> None:
        rows, values = self._placed(stock)
        self._stock[rows] = values
        self._numbers[STOCK].put(rows)
        self._show(rows)

    def _placed(self, numbers: dict[str, float]) -> tuple[np.ndarray, np.ndarray]:
        """Rows and values of items that have a row."""
        rows = self.items.rows(list(numbers)).astype(np.int64) if numbers else np.empty(0, dtype=np.int64)
        found = rows >= 0
        return rows[found], np.array(list(numbers.values()), dtype=np.float64)[found]

    def _log_bids(self, bids: np.ndarray) -> np.ndarray:
        return self._loaded.settings.train.temperature * np.log(np.maximum(bids, self._least_bid))

    @staticmethod
    def _smallest(bids: np.ndarray | None) -> float:
        positive = np.empty(0) if bids is None else bids[bids > 0]
        return float(positive.min()) * ZERO_BID_SHARE if len(positive) else 1.0


def _grown(stored: RankTable | None, rows: int) -> RankTable | None:
    return None if stored is None else RankTable(stored.ranker, with_last(stored.rows, rows))


def _with_nothing_behind(values: np.ndarray, size: int) -> np.ndarray:
    """[I] -> [size], NaN behind."""
    return np.concatenate([values, np.full(size - len(values), np.nan)])


def _number(name: str, value: ContextValue) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # a TypeError says so
    except (TypeError, ValueError):
        raise DataError(f"values[{name}]: {shown(str(value))} is no number, and requests ask ranges of it") from None


def _text(name: str, value: ContextValue) -> str:
    if isinstance(value, tuple | float):
        raise DataError(f"values[{name}]: {shown(str(value))} is no text, and requests filter by it")
    return as_text(value)
