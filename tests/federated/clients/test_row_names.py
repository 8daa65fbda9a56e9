"""Rows are known by what they stand for."""

from __future__ import annotations

import numpy as np
import pytest

from contracts.errors import DataError
from contracts.features.vocabulary import Vocabulary
from federated.clients.prepare import federated_spec
from federated.clients.row_names import row_names
from federated.clients.row_space import RowSpace
from tests.federated import small_world


def named(keys):
    """Value of the item table -> its name, under a vocabulary of these keys."""
    config, spec = small_world.config(), small_world.spec()
    spec = spec.model_copy(update={"fields": tuple(
        field.model_copy(update={"size": len(keys) + 2}) if field.vocabulary == "item" else field
        for field in spec.fields)})
    space = RowSpace(federated_spec(config, spec), 10)
    cities = Vocabulary.of([small_world.key("city", number) for number in range(small_world.CITIES)], "string")
    names = row_names(space, {"item": Vocabulary.of(keys, "string"), "city": cities})
    assert len(np.unique(names)) == len(names) == len(space.private_places)
    at = space.private_tables.index("item")
    start = sum(stop - start for start, stop in space.private_ranges()[:at])
    return dict(zip(keys, names[start : start + len(keys)].tolist(), strict=True))


def test_one_more_value_renames_no_row():
    keys = [small_world.key("item", number) for number in range(small_world.ITEMS)]
    before, after = named(keys), named(["a new item", *keys])
    assert {key: after[key] for key in keys} == before


def test_rows_of_a_table_without_vocabulary_are_named_by_their_id():
    space = RowSpace(federated_spec(small_world.config(), small_world.spec()), 10)
    assert (row_names(space, {}) == row_names(space, {})).all()
    assert len(np.unique(row_names(space, {}))) == len(space.private_places)


def test_a_vocabulary_of_another_size_than_its_table_is_refused():
    """Ids in place of names would move when the vocabulary grows, and answers with them."""
    space = RowSpace(federated_spec(small_world.config(), small_world.spec()), 10)
    keys = [small_world.key("item", number) for number in range(small_world.ITEMS + 1)]
    with pytest.raises(DataError, match=f"{small_world.ITEMS} rows of its own and its vocabulary {len(keys)} values"):
        row_names(space, {"item": Vocabulary.of(keys, "string")})
