from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.duration import UNITS, label, seconds


@given(st.integers(0, 10_000), st.sampled_from(sorted(UNITS)))
def test_a_duration_is_number_times_unit(number, unit):
    assert seconds(f"{number}{unit}") == number * UNITS[unit]


@given(st.integers(0, 10_000_000))
def test_the_label_reads_back_as_the_same_duration(duration):
    assert seconds(label(duration)) == duration


@pytest.mark.parametrize("text", ["", "7", "d", "1.5h", "-1d", "7 weeks", None, True, 1.5])
def test_anything_else_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="'30m', '6h' or '7d'"):
        seconds(text)
