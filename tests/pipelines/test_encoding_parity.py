"""Spark and contracts/features/encoding.py give the same ids for every field kind, whatever the values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.artifacts import LABEL, ROW
from contracts.features.encoding import Encoder, number
from contracts.features.feature_spec import FIRST_ID, FeatureField, FeatureSpec, Side
from contracts.features.vocabulary import Vocabulary
from pipelines.encoding.encode_examples import SIDES, encode

WORDS = ["", " ", "a", "A", "a ", "zürich", "東京", "😀", "e\u0301", "'", '"', "\\", "\n", "`", "ß", "SS", "10", "9"]
NUMBERS = [-(2**63), 2**63 - 1, 0, -1, 1, 2**53, 2**53 + 1, 42]
EDGES = (-1.5, -0.0, 1e-300, 0.1, 0.30000000000000004, 1.0, 1e300)
FLOATS = [None, *map(float, ("nan", "inf", "-inf")), 0.0, -0.0, 0.3, np.nextafter(0.1, 0), 5e-324, 1.7e308, *EDGES]

letters = st.characters(exclude_characters="\0", codec="utf-8")
texts = st.one_of(st.none(), st.sampled_from(WORDS), st.text(letters, max_size=4))
integers = st.one_of(st.none(), st.sampled_from(NUMBERS), st.integers(-(2**63), 2**63 - 1))
floats = st.one_of(st.sampled_from(FLOATS), st.floats())
row = st.fixed_dictionaries({
    "word": texts, "whole": integers, "flag": st.sampled_from([None, True, False]), "price": floats, "rate_7d": floats,
    "tags": st.one_of(st.none(), st.lists(texts, max_size=6)),
    "codes": st.one_of(st.none(), st.lists(integers, max_size=6)),
    "flags": st.one_of(st.none(), st.lists(st.sampled_from([None, True, False]), max_size=4)),
    "history": st.one_of(st.none(), st.lists(texts, max_size=9)),
})
SCHEMA = pa.schema({
    "word": pa.string(), "whole": pa.int64(), "flag": pa.bool_(), "price": pa.float64(), "rate_7d": pa.float64(),
    "tags": pa.list_(pa.string()), "codes": pa.list_(pa.int64()), "flags": pa.list_(pa.bool_()),
    "history": pa.list_(pa.string()), ROW: pa.int64(), LABEL: pa.float32(),
})


def field(name, kind, side="item", **settings):
    return FeatureField(name=name, kind=kind, side=side, **settings)


@pytest.fixture(scope="module")
def vocabularies():
    words = Vocabulary.of(WORDS[:-4], "string")
    whole = Vocabulary.of(NUMBERS[:-2], "int64")
    codes = Vocabulary.of(np.arange(0, 400, 3), "int64")
    return {"word": words, "whole": whole, "flag": Vocabulary.of([1], "int64"), "tags": words, "codes": whole,
            "flags": Vocabulary.of([0, 1], "int64"), "both": codes}


@pytest.fixture(scope="module")
def spec(vocabularies):
    size = {name: len(keys) + FIRST_ID for name, keys in vocabularies.items()}
    listed = [("tags", "string", 3), ("codes", "int64", 5), ("flags", "bool", 1)]
    return FeatureSpec(fields=(
        field("word", "categorical", vocabulary="word", size=size["word"]),
        field("whole", "categorical", "user", key_type="int64", vocabulary="whole", size=size["whole"]),
        field("flag", "categorical", "context", key_type="bool", vocabulary="flag", size=size["flag"]),
        field("price", "numeric", edges={8: EDGES, 2: EDGES[3:4], 1: ()}),
        field("rate_7d", "counter", "user", edges={4: EDGES[2:5]}),
        *(field(n, "multi_valued", key_type=key, vocabulary=n, size=size[n], length=width) for n, key, width in listed),
        field("history", "sequence", "user", vocabulary="word", size=size["word"], of="word", length=4),
        field("both", "cross", "cross", parts=("word", "price#8"), vocabulary="both", size=size["both"]),
        field("hashed", "cross", "cross", parts=("whole", "flag", "rate_7d#4"), buckets=7, size=7 + FIRST_ID),
    ))


def expected(spec, vocabularies, columns):
    """Slot name -> ids [B, width], by the code that a server runs."""
    encoder = Encoder(spec, vocabularies)
    sides: tuple[Side, ...] = ("user", "context", "item")
    ids = encoder.encode(columns, *sides).ids
    slots = {slot.name: ids[:, slot.start : slot.start + slot.width] for slot in spec.id_slots(*sides)}
    crosses = encoder.cross_ids({name: block[:, 0] for name, block in slots.items()})
    return slots | {slot.name: crosses[:, [slot.start]] for slot in spec.id_slots("cross")}


def assert_parity(spark, spec, vocabularies, rows):
    columns = {name: [row[name] for row in rows] for name in SCHEMA.names if name not in (ROW, LABEL)}
    raw = pa.table({**columns, ROW: np.arange(len(rows)), LABEL: np.zeros(len(rows))}, schema=SCHEMA)
    found = encode(spark.createDataFrame(raw), spec, vocabularies).frame().orderBy(ROW).toArrow()
    for name, ids in expected(spec, vocabularies, columns).items():
        assert np.array(found.column(name).to_pylist()).reshape(len(rows), -1).tolist() == ids.tolist(), name
    for slot in spec.dense_slots(*SIDES):
        np.testing.assert_array_equal(number(found.column(slot.name).to_pylist()), number(columns[slot.name]))


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(row, min_size=1, max_size=60))
def test_any_values(spark, spec, vocabularies, rows):
    assert_parity(spark, spec, vocabularies, rows)


@pytest.fixture
def every_value():
    """Every listed value of every kind at least once."""
    count = max(len(WORDS), len(NUMBERS), len(FLOATS)) + 1
    lists = [None, [], [None], WORDS[:2], WORDS[:9], ["never seen", "a", None, ""]]
    return [{
        "word": [None, *WORDS][i % (len(WORDS) + 1)], "whole": [None, *NUMBERS][i % (len(NUMBERS) + 1)],
        "flag": [None, True, False][i % 3], "price": FLOATS[i % len(FLOATS)], "rate_7d": FLOATS[-1 - i % len(FLOATS)],
        "tags": lists[i % 6], "codes": [None, [], NUMBERS, [None, 7]][i % 4],
        "flags": [None, [], [True, False], [None]][i % 4], "history": lists[(i + 1) % 6],
    } for i in range(count)]


def test_every_listed_value(spark, spec, vocabularies, every_value):
    assert_parity(spark, spec, vocabularies, every_value)


def test_empty_vocabularies_know_nothing(spark, spec, vocabularies, every_value):
    empty = {name: Vocabulary.of([], "string" if keys.holds_text else "int64") for name, keys in vocabularies.items()}
    assert_parity(spark, spec, empty, every_value)
