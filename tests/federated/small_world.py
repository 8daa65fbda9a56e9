"""A log of thirty users and forty items, encoded and written as the pipelines would, without Spark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contracts.artifacts import DRAWS, ITEM, LABEL, ROW, USER, Artifacts
from contracts.config.config import Config, parse
from contracts.features import vocabulary
from contracts.features.feature_spec import FIRST_ID, PADDING, FeatureField, FeatureSpec
from contracts.features.vocabulary import Vocabulary

USERS, ITEMS, GENRES, CITIES, HISTORY, ROWS = 30, 40, 6, 12, 4, 900
TEXT = """
name = "small"
[log]
path = "x"
user_id = "user"
item_id = "item"
event_time = "t"
key = ["user", "item"]
[label]
expression = "y"
[[fields]]
name = "user"
kind = "categorical"
side = "user"
[[fields]]
name = "city"
kind = "categorical"
side = "user"
[[fields]]
name = "history"
kind = "sequence"
side = "user"
of = "item"
length = 4
[[fields]]
name = "item"
kind = "categorical"
side = "item"
[[fields]]
name = "genre"
kind = "categorical"
side = "item"
[[fields]]
name = "price"
kind = "numeric"
side = "item"
granularities = [3]
[train]
embedding_dim = 4
hidden = [8]
tower_dim = 4
tower_hidden = [8]
dropout = 0.0
calibration = "isotonic"
[retrieve]
candidates = 30
[prerank]
keep = 20
[serve]
max_limit = 10
parity_rows = 40
[federated]
fields = ["city", "history", "item", "genre", "price"]
settings = ["cpp2"]
served = "cpp2"
rounds = 3
clients = 8
neighbours = 6
evaluate_every = 2
public_up_to = 10
learning_rate = 0.1
"""


def config(**federated: object) -> Config:
    made = parse(TEXT)
    return made.model_copy(update={"federated": made.federated.model_copy(update=federated)})


def spec() -> FeatureSpec:
    return FeatureSpec(fields=(
        FeatureField(name="user", kind="categorical", side="user", vocabulary="user", size=USERS + FIRST_ID),
        FeatureField(name="city", kind="categorical", side="user", vocabulary="city", size=CITIES + FIRST_ID),
        FeatureField(name="history", kind="sequence", side="user", of="item", vocabulary="item",
                     size=ITEMS + FIRST_ID, length=HISTORY),
        FeatureField(name="item", kind="categorical", side="item", vocabulary="item", size=ITEMS + FIRST_ID),
        FeatureField(name="genre", kind="categorical", side="item", vocabulary="genre", size=GENRES + FIRST_ID),
        FeatureField(name="price", kind="numeric", side="item", edges={3: (1.0, 2.0)}, mean=1.5, std=0.5),
    ))


def key(kind: str, number: int) -> str:
    return f"{kind}-{number:03d}"


def write(folder: Path, drawn: int = 0) -> Artifacts:
    """encoding, examples of all windows, online items; of a log of takes alone where rows are `drawn` for each."""
    out = Artifacts(folder)
    out.encoding.mkdir(parents=True)
    spec().write(out.encoding)
    for kind, count in (("user", USERS), ("city", CITIES), ("item", ITEMS), ("genre", GENRES)):
        vocabulary.write(out.encoding, kind, Vocabulary.of([key(kind, n) for n in range(count)], "string"))
    generator = np.random.default_rng(11)
    for at, window in enumerate(("train", "validation", "test")):
        part = out.examples(window) / "day=2026-01-01"
        part.mkdir(parents=True)
        pq.write_table(_examples(generator, ROWS * at, drawn), part / "part.parquet")
    out.online_items.mkdir(parents=True)
    pq.write_table(pa.table({
        ITEM: [key("item", n) for n in range(ITEMS)], "item": [key("item", n) for n in range(ITEMS)],
        "genre": [key("genre", n % GENRES) for n in range(ITEMS)], "price": [0.5 + n % 3 for n in range(ITEMS)],
        "_shown": [10**6] * ITEMS, "_clicks": [10**5] * ITEMS,
    }), out.online_items / "items.parquet")
    return out


def _examples(generator: np.random.Generator, first_row: int, drawn: int) -> pa.Table:
    users, items, labels = _takes(generator, drawn) if drawn else _impressions(generator)
    history = generator.integers(0, ITEMS, (ROWS, HISTORY)) + FIRST_ID
    history[generator.random(ROWS) < 0.3, 2:] = PADDING
    price = 0.5 + items % 3
    rows = pa.table({
        LABEL: labels.astype(np.float32),
        ROW: np.arange(first_row, first_row + ROWS), USER: users + 1,
        "user": (users + FIRST_ID).astype(np.int32), "city": (users % CITIES + FIRST_ID).astype(np.int32),
        "history": pa.array(history.astype(np.int32).tolist(), pa.list_(pa.int32())),
        "item": (items + FIRST_ID).astype(np.int32), "genre": (items % GENRES + FIRST_ID).astype(np.int32),
        "price": price, "price#3": (np.searchsorted([1.0, 2.0], price, side="right") + FIRST_ID).astype(np.int32),
    })
    return rows.append_column(DRAWS, pa.array(np.full(ROWS, drawn / (ITEMS - 1)))) if drawn else rows


def _impressions(generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """users, items, clicks [ROWS]."""
    users, items = generator.integers(0, USERS, ROWS), generator.integers(0, ITEMS, ROWS) ** 2 // ITEMS
    return users, items, generator.random(ROWS) < 1 / (1 + np.exp(0.7 - (items % GENRES == users % GENRES) * 2.0))


def _takes(generator: np.random.Generator, drawn: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """users, items, 1 for a take [ROWS]: after each take as many of the other items, every one alike, as are `drawn`.

    A user takes item i with chance w_i / sum w, w being 8 for the user's genre and 1 for others.
    """
    takes = ROWS // (drawn + 1)
    users = generator.integers(0, USERS, takes)
    weight = np.where(np.arange(ITEMS) % GENRES == users[:, None] % GENRES, 8.0, 1.0)
    taken = (weight.cumsum(1) / weight.sum(1)[:, None] < generator.random(takes)[:, None]).sum(1)
    others = (taken[:, None] + generator.integers(1, ITEMS, (takes, drawn))) % ITEMS
    labels = np.tile(np.arange(drawn + 1) == 0, takes)
    return np.repeat(users, drawn + 1), np.concatenate([taken[:, None], others], axis=1).ravel(), labels
