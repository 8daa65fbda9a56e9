from __future__ import annotations

from benchmarks.scale import scale


def test_one_process_sends_nothing_and_is_its_own_measure() -> None:
    found = scale.measure(2000, 128, 2, 1, [1])
    assert found["1"]["rows_per_second"] > 0
    assert found["1"]["bytes_an_update"] == found["1"]["bytes_by_arithmetic"] == 0
    assert "1.00 times one" in scale.said(found)


def test_bytes_by_hand() -> None:
    """Of 2 processes, half of 100 rows is asked of the other: 4 bytes of id, two vectors of 10 floats; a ring sends the
    dense numbers and three words twice, halved."""
    found = scale.expected_bytes(2, {"rows_looked_up": 100.0, "dense_numbers": 5.0})
    assert found == 50 * (4 + 80) + 8 * 4
