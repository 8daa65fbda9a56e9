from __future__ import annotations

from sluice.engines.records import EngineComparison, TableComparison


def test_engines_are_equal_where_every_tables_hashes_are() -> None:
    same = TableComparison(table="features", rows=3, embedded_hash="a", spark_hash="a")
    other = TableComparison(table="events", rows=3, embedded_hash="a", spark_hash="b")
    assert EngineComparison(rows=3, spark_master="local[2]", tables=(same,)).equal
    assert not EngineComparison(rows=3, spark_master="local[2]", tables=(same, other)).equal
