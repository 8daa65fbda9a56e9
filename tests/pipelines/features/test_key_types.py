from __future__ import annotations

from typing import get_args

from contracts.config.section import KeyType
from pipelines.features.key_types import SPARK_TYPES


def test_every_type_of_key_has_one() -> None:
    assert set(SPARK_TYPES) == set(get_args(KeyType))
