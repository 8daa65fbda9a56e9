from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from benchmarks.scale import scale, world


def process(rate: float, sent: float) -> dict[str, float]:
    return {"rows_per_second": rate, "seconds": 1.0, "processor_seconds": 1.5, "bytes_an_update": sent,
            "rows_looked_up": 100.0, "dense_numbers": 5.0, "dense_tensors": 2.0, "loss": 0.3}


def test_rounds_and_processes_become_one_line_each() -> None:
    rounds = [[process(rate, 4000.0), process(rate, 5000.0)] for rate in (160.0, 200.0, 150.0)]
    alone = [[process(rate, 0.0)] for rate in (100.0, 80.0, 120.0)]
    found = {"1": scale.figures(1, alone), "2": scale.figures(2, rounds)}
    assert found["2"] | {"bytes_by_arithmetic": 0} == {
        "rows_per_second": 160.0, "lowest": 150.0, "highest": 200.0, "processor_seconds": 3.0,
        "bytes_an_update": 4500.0, "bytes_by_arithmetic": 0, "loss": 0.3}
    assert found["1"]["bytes_by_arithmetic"] == 0
    assert "1.60 times one" in scale.said(found)


def test_bytes_by_hand() -> None:
    """Of 2 processes, half of 100 rows is asked of the other: 4 bytes of id, two vectors of 10 floats; one count; a
    ring sends the dense numbers, a word for each of two tensors and four more twice, halved."""
    found = scale.expected_bytes(2, {"rows_looked_up": 100.0, "dense_numbers": 5.0, "dense_tensors": 2.0})
    assert found == 50 * (4 + 80) + 8 + 11 * 4


@pytest.mark.parametrize("processes", [*scale.PROCESSES])
@pytest.mark.parametrize("updates", [3, 9])
def test_every_process_has_a_batch_for_each_update(processes: int, updates: int, tmp_path: Path) -> None:
    batch = 8192
    examples = world.write(tmp_path, world.spec(100), scale.rows_for(batch * updates))
    for rank in range(processes):
        stream = examples.batches(batch, shuffle=True, seed=1, rank=rank, world=processes)
        sizes = [len(found.label) for found in itertools.islice(stream, updates)]
        assert sizes == [batch // processes] * updates


@pytest.mark.parametrize("processes", [*scale.PROCESSES])
@pytest.mark.parametrize("updates", [3, 9, 40])
def test_every_process_reads_its_share_and_all_of_it(
    processes: int, updates: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that the clock holds as much reading for one process as for two and four together."""
    batch, read_group, read = 8192, pq.ParquetFile.read_row_group, []
    examples = world.write(tmp_path, world.spec(100), scale.rows_for(batch * updates))

    def reading(file: pq.ParquetFile, number: int, **how: Any) -> Any:
        read.append(number)
        return read_group(file, number, **how)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", reading)
    for rank in range(processes):
        stream = examples.batches(batch, shuffle=True, seed=1, rank=rank, world=processes)
        assert len([*itertools.islice(stream, updates)]) == updates
        assert len(read) == (rank + 1) * len(examples.groups) / processes
    assert sorted(read) == [*range(len(examples.groups))]
