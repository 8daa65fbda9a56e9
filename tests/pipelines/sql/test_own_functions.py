"""The pipelines call no function that is not compared on both engines (test_functions.py)."""

from __future__ import annotations

import ast
from pathlib import Path

from pipelines.sql.functions import EQUAL
from pipelines.sql.own_functions import AGGREGATES, OF_ROWS

PIPELINES = Path(__file__).resolve().parents[3] / "pipelines"
NO_FUNCTIONS = {"Column", "broadcast", "col", "desc", "expr", "lit", "when"}  # parts of a plan, and CASE, an operator
OTHER_NAMES = {"create_map": "map", "countDistinct": "count_distinct"}


def called() -> set[str]:
    """Names of pyspark.sql.functions."""
    trees = (ast.walk(ast.parse(path.read_text(encoding="utf-8"))) for path in PIPELINES.rglob("*.py"))
    found = {node.attr for tree in trees for node in tree
             if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "F"}
    return {OTHER_NAMES.get(name, name) for name in found - NO_FUNCTIONS}


def test_every_function_that_the_pipelines_call_is_compared() -> None:
    assert called() - EQUAL.keys() == AGGREGATES.keys() | OF_ROWS.keys()
