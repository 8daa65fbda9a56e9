from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.encoding.sorted_files import in_order

KEYS = st.one_of(st.lists(st.lists(st.text(max_size=3), max_size=12), max_size=4),
                 st.lists(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=12), max_size=4))


@given(keys=KEYS, statistics=st.booleans())
def test_files_are_merged_in_parts(
    keys: list[list[Any]], statistics: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("files")
    kind = pa.int64() if any(isinstance(key, int) for part in keys for key in part) else pa.string()
    paths: list[Path] = []
    for number, part in enumerate(keys):
        paths.append(folder / f"{number}.parquet")
        table = pa.table({"other": [0] * len(part), "key": pa.array(part, kind)})
        pq.write_table(table, paths[-1], write_statistics=statistics)
    found = [key for part in in_order(paths, "key") for key in part.to_pylist()]
    assert found == sorted(key for part in keys for key in part)


def test_ranges_of_one_sort_are_read_one_after_another(tmp_path: Path) -> None:
    for number in range(4):
        pq.write_table(pa.table({"key": [f"{number}{n}" for n in range(5)]}), tmp_path / f"{number}.parquet")
    parts = [part.to_pylist() for part in in_order(sorted(tmp_path.iterdir(), reverse=True), "key")]
    assert parts == [[f"{number}{n}" for n in range(5)] for number in range(4)]
