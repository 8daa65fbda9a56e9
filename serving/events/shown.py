"""What was shown of one key, and the counters and the history that it makes at a moment, by the definitions of
contracts/features/event_clock.py."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from contracts.config.fields import FieldConfig
from contracts.features.event_clock import Measure, closed, counted, entered, learned, measures, statistic_of
from contracts.features.event_features import ToldEvents

NEVER = np.iinfo(np.int64).max
Row = tuple[int, int, str, int | None, int | None, str | None]


class Shown(NamedTuple):
    """N impressions; int64 [N] microseconds, NEVER where there was no click. `columns` as JSON of those clicked, where
    they were asked for."""

    at: np.ndarray
    entered: np.ndarray
    closed: np.ndarray
    learned: np.ndarray
    counted: np.ndarray
    clicked_at: np.ndarray
    items: tuple[str, ...]
    columns: tuple[str | None, ...]

    @classmethod
    def of(cls, rows: Sequence[Row], label_window: int) -> Self:
        """Of (at, known, item, click at, click known, columns), in the order in which they were recorded."""
        count = len(rows)
        at, known = (np.fromiter((row[k] for row in rows), np.int64, count) for k in (0, 1))
        click_at, click_known = (
            np.fromiter((NEVER if row[k] is None else row[k] for row in rows), np.int64, count) for k in (3, 4))
        enters = entered(at, known, np.maximum)
        closes = closed(at, enters, label_window, np.maximum)
        learns = learned(enters, np.maximum(click_known, known), np.maximum)
        return cls(at, enters, closes, learns, counted(closes, learns, np.maximum), click_at,
                   tuple(row[2] for row in rows), tuple(row[5] for row in rows))

    @property
    def newest(self) -> int:
        """When the last of what is known was learned, in microseconds; 0 without any."""
        learned_ = self.learned[self.learned < NEVER]
        return int(max(self.entered.max(initial=0), learned_.max(initial=0)))

    def history(self, moment: int, length: int, after: int = 0) -> tuple[str, ...]:
        """The items clicked last of what is known at `moment` and was learned after `after`, newest first."""
        return tuple(self.items[place] for place in self._last(moment, length, after))

    def told(self, names: Sequence[str], moment: int, length: int, after: int = 0) -> ToldEvents:
        """Of the same: when they were clicked, and their columns as the pipelines write them as text."""
        places = self._last(moment, length, after)
        rows = [json.loads(self.columns[place] or "{}") for place in places]
        columns = {name: [_text(row.get(name)) for row in rows] for name in names}
        return ToldEvents(self.clicked_at[places].tolist(), columns)

    def overlap(self, moment: int, length: int, after: int) -> tuple[tuple[str, int], ...]:
        """The items clicked last until `after`, newest first, and the place in `history` of what was learned later, -1
        of the others; none where nothing was."""
        known, made = self.learned <= moment, self.clicked_at <= after
        late = known & (self.learned > after)
        if not (made & late).any():
            return ()
        places = itertools.count(int(np.count_nonzero(late & ~made)))
        return tuple((self.items[row], next(places) if late[row] else -1)
                     for row in self._ordered(known & made, length))

    def _last(self, moment: int, length: int, after: int) -> list[int]:
        return self._ordered((self.learned <= moment) & (self.learned > after), length)

    def _ordered(self, chosen: np.ndarray, length: int) -> list[int]:
        """Places of the last of the chosen ones, newest first."""
        known = np.flatnonzero(chosen)
        order = np.lexsort([known, self.at[known], self.learned[known], self.clicked_at[known]])
        found: list[int] = known[order][::-1][:length].tolist()
        return found

    def counters(self, field: FieldConfig, moment: int, prior: float) -> dict[str, float]:
        """The features that a counter over this key expands into."""
        return {
            name: statistic_of(statistic, tuple(self._measured(m, moment) for m in measures(statistic, window)), prior,
                               field.prior_strength)
            for name, statistic, window in field.counters()
        }

    def _measured(self, measure: Measure, moment: int) -> float:
        entry = {"shown": self.entered, "closed": self.closed, "clicked": self.counted}[measure.event]
        return float(np.count_nonzero(measure.counts(self.at, entry, moment)))


def _text(value: object) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)
