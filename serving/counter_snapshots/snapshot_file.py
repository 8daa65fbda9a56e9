"""Held counters <-> one .npz: plain arrays, each with the checksum (CRC-32) that zip keeps of it.

    about                        JSON: the standing, and how many runs each part has
    KEY.names                    JSON: the items of the slots
    KEY.EVENT.waiting.RUN.0-2    entry, at, slot
    KEY.EVENT.leaving.RUN.0-2    at, slot, windows

Counts are not in it: they follow from the runs (serving/item_counters/timeline.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np

from contracts.features.event_clock import Event
from serving.item_counters.counter_standing import HeldCounters, Standing
from serving.item_counters.key_counters import HeldKey
from serving.item_counters.sorted_runs import Columns
from serving.item_counters.timeline import Held

FORMAT = 1  # of the arrays: a file of another one is not read
PARTS, COLUMNS = ("waiting", "leaving"), 3
Stored = Mapping[str, np.ndarray]


def write(held: HeldCounters, path: Path) -> None:
    """Raises OSError."""
    arrays, runs = dict[str, np.ndarray](), list[dict[str, list[int]]]()
    for place, key in enumerate(held.keys):
        arrays[f"{place}.names"] = _text(key.names())
        runs.append({event: _arrays_of(timeline, f"{place}.{event}", arrays)
                     for event, timeline in key.timelines.items()})
    about = {"format": FORMAT, "standing": held.standing._asdict(), "runs": runs}
    with path.open("wb") as file:
        np.savez(file, about=_text(about), **arrays)  # type: ignore[arg-type]


@contextmanager
def opened(path: Path) -> Iterator[HeldCounters]:
    """Runs are read, and checked, as they are asked for, once. Raises whatever numpy, zip and JSON do of a file that is
    none or is damaged, then too."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        about = _said(stored, "about")
        if about["format"] != FORMAT:
            raise ValueError(f"it is of format {about['format']}, and this version reads {FORMAT}")
        standing = Standing(**about["standing"])
        yield HeldCounters(standing, [_key(stored, str(place), runs, standing.moment)
                                      for place, runs in enumerate(about["runs"])])


def _arrays_of(timeline: Held, name: str, arrays: dict[str, np.ndarray]) -> list[int]:
    """Puts them among the others; returns how many runs each part has."""
    counts = []
    for part, runs in zip(PARTS, (timeline.waiting, timeline.leaving), strict=True):
        found = list(runs)
        counts.append(len(found))
        arrays.update({f"{name}.{part}.{run}.{place}": column
                       for run, columns in enumerate(found) for place, column in enumerate(columns)})
    return counts


def _key(stored: Stored, place: str, runs: Mapping[str, list[int]], moment: int) -> HeldKey:
    timelines = {event: Held(moment, *(_runs(stored, f"{place}.{event}.{part}", count)
                                       for part, count in zip(PARTS, counts, strict=True)))
                 for event, counts in runs.items()}
    return HeldKey(partial(_said, stored, f"{place}.names"), cast(Mapping[Event, Held], timelines))


def _runs(stored: Stored, name: str, count: int) -> Iterator[Columns]:
    for run in range(count):
        yield tuple(stored[f"{name}.{run}.{place}"] for place in range(COLUMNS))


def _text(value: object) -> np.ndarray:
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


def _said(stored: Stored, name: str) -> Any:
    return json.loads(stored[name].tobytes())
