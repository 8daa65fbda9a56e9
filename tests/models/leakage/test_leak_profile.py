from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from contracts.features import vocabulary
from contracts.features.feature_spec import FeatureField
from contracts.features.vocabulary import Vocabulary
from contracts.summaries.leaks import ValueGroup
from models.leakage.field_columns import FieldColumn, number_column
from models.leakage.leak_profile import GROUPS, profile

LABEL = np.array([1.0, 0, 1, 0, 0, 0, 1, 1])


def test_keys_are_named_by_frequency_and_the_rest_is_one_group(tmp_path: Path) -> None:
    keys = Vocabulary.of([f"k{number:02d}" for number in range(GROUPS + 3)], "string")
    vocabulary.write(tmp_path, "f", keys)
    random = np.random.default_rng(0)
    codes = random.integers(0, len(keys) + 2, size=(4000, 1))
    codes[codes == 1] = 2
    label = (random.random(4000) < 0.2 + 0.5 * (codes[:, 0] == 2)).astype(float)
    field = FeatureField(name="f", kind="categorical", side="user", vocabulary="f", size=len(keys) + 2)
    found = profile(FieldColumn("f", codes, field.size, codes[:, 0] > 1), field, label, tmp_path)
    assert [group.value for group in found[:2]] == ["no value", "k00"]
    assert found[-1].value == "other values"
    assert len(found) == GROUPS + 2
    assert sum(group.share for group in found) == pytest.approx(1)
    assert sum(group.share * group.rate for group in found) == pytest.approx(label.mean())
    assert found[1].rate == label[codes[:, 0] == 2].mean()


def test_numbers_are_named_by_their_least_and_largest(tmp_path: Path) -> None:
    column = number_column("x", np.array([1.0, 1, 1, 1, 5, 6, np.nan, np.nan]))
    found = profile(column, FeatureField(name="x", kind="numeric", side="item"), LABEL, tmp_path)
    assert found[0] == ValueGroup(value="no value", share=0.25, rate=1.0)
    assert found[1] == ValueGroup(value="1", share=0.5, rate=0.5)
    assert found[-1].value.endswith("6")
