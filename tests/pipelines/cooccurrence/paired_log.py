"""Events of five cities, three brands and lists of tags as `sluice features` leaves them, with a fitted encoding."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contracts.artifacts import Artifacts
from contracts.features.feature_spec import FeatureField, FeatureSpec
from contracts.features.vocabulary import Vocabulary
from contracts.windows import TimedWindows

START, DAY = datetime(2026, 1, 5, tzinfo=UTC), timedelta(days=1)
INSTANT = pa.timestamp("us", tz="UTC")
VOCABULARIES = {
    name: Vocabulary.of(values, "string") for name, values in
    {"city": ["c0", "c1", "c2", "c3"], "region": ["r0", "r1"], "brand": ["b0", "b1", "b2"],
     "tags": ["t0", "t1"]}.items()
}


def spec():
    def field(name, kind, side, length=1):
        return FeatureField(name=name, kind=kind, side=side, vocabulary=name, length=length,
                            size=len(VOCABULARIES[name]) + 2)

    return FeatureSpec(fields=(
        field("city", "categorical", "user"), field("region", "categorical", "user"),
        field("brand", "categorical", "item"), field("tags", "multi_valued", "item", 3),
    ))


def row(number, random, hour):
    city = int(random.integers(0, 5))  # c4 is in no vocabulary
    tags = [None, [], ["t0"], ["t1", "t0"], ["t1", "t1", "t9"]][int(random.integers(0, 5))]
    clicked = bool(random.random() < 0.3)
    time = START + hour * timedelta(hours=1)
    label_time = time + timedelta(minutes=int(random.integers(1, 50))) if clicked else time
    return {
        "_row": number, "_time": time, "_known": time, "_label": float(clicked), "_label_time": label_time,
        "_position": int(random.integers(1, 3)), "city": f"c{city}", "region": f"r{city % 2}",
        "brand": f"b{random.integers(0, 3)}", "tags": tags,
    }


def rows(count=400, seed=0, hours=23.0):
    random = np.random.default_rng(seed)
    return [row(number, random, float(random.random() * hours)) for number in range(count)]


def write(tmp_path, name, events, files=1):
    out = Artifacts(tmp_path / name)
    kinds = {"_row": pa.int64(), "_label": pa.float32(), "_position": pa.int32(), "tags": pa.list_(pa.string())}
    kinds |= dict.fromkeys(("_time", "_known", "_label_time"), INSTANT)
    for day in sorted({event["_time"].date() for event in events}):
        folder = out.features / f"day={day.isoformat()}"
        folder.mkdir(parents=True)
        own = [event for event in events if event["_time"].date() == day]
        for number, part in enumerate(np.array_split(np.arange(len(own)), files)):
            table = pa.Table.from_pylist([own[i] for i in part])
            table = pa.table({key: table[key].cast(kinds[key]) if key in kinds else table[key]
                              for key in table.column_names})
            pq.write_table(table, folder / f"part-{number}.parquet")
    TimedWindows(spans={"statistics": (START, START + DAY), "train": (START + DAY, START + 3 * DAY)}).write(out.windows)
    return out
