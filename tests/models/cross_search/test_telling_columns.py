from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from contracts.features.feature_spec import FeatureSpec
from models.cross_search.columns import crossable
from models.cross_search.telling_columns import information, narrowed
from models.examples.batches import ExampleSet
from tests.models.crossed_world import crossed_columns, crossed_spec, pair_logit, write_examples


def kept(spec: FeatureSpec) -> list[str]:
    return [field.name for field in spec.fields]


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> ExampleSet:
    """Six columns, of which the second and the fifth say something of the label."""
    columns = crossed_columns(pair_logit(1, 4), rows=4000)
    return ExampleSet(write_examples(tmp_path_factory.mktemp("wide"), columns), crossed_spec())


def test_the_columns_that_say_most_alone_are_looked_at(examples: ExampleSet) -> None:
    assert kept(narrowed(crossed_spec(), examples, 2, 0)) == ["f1", "f4"]
    three = kept(narrowed(crossed_spec(), examples, 3, 0))
    assert len(three) == 3
    assert {"f1", "f4"} < set(three)


def test_a_log_that_is_not_wide_stays_as_it_is(examples: ExampleSet) -> None:
    spec = crossed_spec()
    assert narrowed(spec, examples, 6, 0) is spec


def test_what_is_left_is_read_as_such(examples: ExampleSet) -> None:
    spec = narrowed(crossed_spec(), examples, 2, 0)
    batch = next(ExampleSet(Path(examples.folder), spec).batches(10))
    assert [slot.name for slot in crossable(spec)] == ["f1", "f4"]
    assert batch.request.ids.shape[1] + batch.candidate.ids.shape[1] == 2


def test_chance_tells_nothing_and_the_label_itself_all(examples: ExampleSet) -> None:
    chance = crossed_columns(lambda ids: np.zeros(len(ids)), rows=8000)
    assert all(abs(information(chance, place)) < 0.001 for place in range(6))
    chance.ids[:, 3] = 2 + chance.label
    rate = chance.label.mean()
    entropy = -(rate * np.log(rate) + (1 - rate) * np.log(1 - rate))
    assert information(chance, 3) == pytest.approx(entropy, abs=0.001)
