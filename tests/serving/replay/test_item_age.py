"""Age of an item by the first click on it that was known before the validation window."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from contracts.artifacts import ITEM, LABEL, LABEL_TIME, ROW, TIME, Artifacts
from contracts.features.encoding import Encoded
from contracts.windows import TimedWindows
from serving.bundle.loaded_bundle import LoadedBundle
from serving.replay.item_age import age_slices
from serving.replay.past_requests import PastRequest
from serving.request.request_features import Requester
from tests.serving.replay.log_times import HOURS, START, TEST
from tests.serving.replay.six_day_log import write_days

EVENTS = (  # item row, hours after the start, label, hours until it is known
    (0, 1, 1, 1), (0, 50, 1, 1),  # the first click counts
    (1, 70, 0, 1), (1, 80, 1, 1),  # not the first impression
    (2, 10, 0, 1),  # never clicked
    (3, 95, 1, 2),  # clicked before the window and known within it
    (4, 95, 1, 0.5), (5, 100, 1, 1))


def written(items: list[str], folder: Path) -> Artifacts:
    times = [START + timedelta(hours=hour) for _, hour, _, _ in EVENTS]
    table = pa.table({
        ROW: range(len(EVENTS)), ITEM: [items[row] for row, _, _, _ in EVENTS], TIME: stamps(times),
        LABEL: [label for _, _, label, _ in EVENTS],
        LABEL_TIME: stamps([time + timedelta(hours=event[3]) for time, event in zip(times, EVENTS, strict=True)])})
    out = Artifacts(folder)
    write_days(out.features, table, times)
    TimedWindows(spans={"validation": (TEST, START + timedelta(hours=HOURS))}).write(out.windows)
    return out


def stamps(times: list[datetime]) -> pa.Array:
    return pa.array(times, pa.timestamp("us", tz="UTC"))


def test_new_is_what_nobody_had_taken_before_the_validation_window(loaded: LoadedBundle, tmp_path: Path) -> None:
    keys = loaded.items.keys_of(np.arange(6))
    out, none = written(keys, tmp_path), np.empty(0, np.int64)
    asked = Requester(True, Encoded(none, none), none.astype(np.int32))
    now = int((TEST + timedelta(hours=1)).timestamp()) * 1_000_000  # 97 hours after the start
    found = age_slices(out, loaded.items, [PastRequest(asked, row, False, now) for row in range(6)])
    assert [found.names[code] for code in found.code] == [
        "1 to 7 days", "below a day", "new", "new", "below a day", "new"]
