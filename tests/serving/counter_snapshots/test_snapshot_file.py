from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from contracts.features.event_clock import Event
from serving.counter_snapshots.snapshot_file import FORMAT, opened, write
from serving.item_counters.counter_standing import HeldCounters, Standing
from serving.item_counters.key_counters import HeldKey
from serving.item_counters.sorted_runs import Columns
from serving.item_counters.timeline import Held

STANDING = Standing("definitions", "log", 7, 70, 75)


def run(*times: int) -> Columns:
    at = np.array(times, dtype=np.int64)
    return at, at - 1, np.arange(len(at), dtype=np.int32)


def leaving(*times: int) -> Columns:
    at, _, slots = run(*times)
    return at, slots, np.full(len(at), 3, dtype=np.uint8)


def held() -> HeldCounters:
    """Of two keys; one has no items of its own."""
    first: dict[Event, Held] = {"shown": Held(75, [run(80, 90), run(85)], [leaving(3, 4)]), "closed": Held(75, [], [])}
    return HeldCounters(STANDING, [HeldKey(lambda: ["", "é", "b"], first),
                                   HeldKey(list, {"shown": Held(75, [], [leaving(*range(10))])})])


def plain(found: HeldCounters) -> object:
    """As lists, and read to the end."""
    keys = [(list(key.names()), {event: (line.moment, [[(part.dtype.str, part.tolist()) for part in columns]
                                                       for part_runs in (line.waiting, line.leaving)
                                                       for columns in part_runs])
                                 for event, line in key.timelines.items()}) for key in found.keys]
    return found.standing, keys


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    write(held(), tmp_path / "kept")
    with opened(tmp_path / "kept") as found:
        assert plain(found) == plain(held())


@pytest.mark.parametrize("seed", range(10))
def test_a_file_that_is_cut_or_of_which_a_byte_is_another_is_not_read_as_something_else(
    tmp_path: Path, seed: int
) -> None:
    draw, path = random.Random(seed), tmp_path / "kept"
    write(held(), path)
    whole = path.read_bytes()
    for _ in range(20):
        place = draw.randrange(len(whole))
        other = whole[:place] + bytes([whole[place] ^ draw.randrange(1, 256)]) + whole[place + 1:]
        for damaged in (other, whole[:place]):
            path.write_bytes(damaged)
            assert said(path) in (None, plain(held()))  # zip holds bytes that say nothing of the arrays


def said(path: Path) -> object:
    """None of what is not read to its end."""
    try:
        with opened(path) as found:
            return plain(found)
    except Exception:
        return None


def test_another_format_is_refused(tmp_path: Path) -> None:
    write(held(), tmp_path / "kept.npz")
    with np.load(tmp_path / "kept.npz") as stored:
        arrays = dict(stored)
    about = json.loads(arrays["about"].tobytes()) | {"format": FORMAT + 1}
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    np.savez(tmp_path / "kept.npz", **arrays)
    with pytest.raises(ValueError, match="format 2"), opened(tmp_path / "kept.npz"):
        pass
