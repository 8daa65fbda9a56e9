from __future__ import annotations

import numpy as np
import pytest

from contracts.features.feature_spec import FIRST_ID, UNKNOWN
from models.interactions.told_events import GAPS, SECOND, Told, gap_ids, inputs

START = 1_700_000_000 * SECOND


@pytest.mark.parametrize(("seconds", "bucket"), [
    (0, 0), (0.9, 0), (1, 1), (2, 1), (3, 2), (86_400, 16), (1e12, GAPS - 1)])
def test_a_gap_has_the_bucket_of_its_power_of_two(seconds, bucket):
    times = np.array([START])
    assert gap_ids(times, times + int(seconds * SECOND)).tolist() == [FIRST_ID + bucket]


def test_a_later_moment_that_lies_before_is_no_gap_and_an_unknown_one_is_unknown():
    found = gap_ids(np.array([START, START, 0]), np.array([START - 5, 0, START]))
    assert found.tolist() == [FIRST_ID, UNKNOWN, UNKNOWN]


def test_the_last_gap_reaches_to_the_request():
    times, values = START + np.array([0, 1, 4]) * SECOND, np.array([[2], [3], [2]])
    found = inputs(times, values, START + 11 * SECOND)
    assert found.tolist() == [[FIRST_ID + 1, 2], [FIRST_ID + 2, 3], [FIRST_ID + 3, 2]]
    assert inputs(times, values, 0)[-1].tolist() == [UNKNOWN, 2]
    assert inputs(None, values, 7).tolist() == values.tolist()


def test_inputs_have_embeddings_of_gaps_first():
    told = Told(True, np.zeros((3, 1), np.int64), (5,))
    assert told.tables == (FIRST_ID + GAPS, 5)
    assert told._replace(gaps=False).tables == (5,)
    assert told.at(np.array([True, False, False])).values.shape == (1, 1)
