"""The queries that a session sends to the embedded engine while a block runs: what is collected or written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from google.protobuf.message import Message
from pyspark.sql import SparkSession


@contextmanager
def counted_queries(spark: SparkSession) -> Iterator[list[Any]]:
    """Their plans, in the order in which they are asked."""
    client, plans = spark.client, []  # type: ignore[attr-defined]
    collect, write = client.to_table, client.execute_command

    def collected(plan: Any, *others: Any) -> Any:
        plans.append(plan)
        return collect(plan, *others)

    def written(command: Any, *others: Any) -> Any:
        plans.append(command)
        return write(command, *others)

    with mock.patch.object(client, "to_table", collected), mock.patch.object(client, "execute_command", written):
        yield plans


def relations(plan: Message, kind: str) -> list[Any]:
    """Those of a kind (join, aggregate, map_partitions...) anywhere in a plan."""
    found = [getattr(plan, kind)] if plan.DESCRIPTOR.name == "Relation" and plan.WhichOneof("rel_type") == kind else []
    for field, value in plan.ListFields():
        if field.message_type is None or field.message_type.GetOptions().map_entry:
            continue
        for part in value if field.is_repeated else [value]:
            found += relations(part, kind)
    return found
