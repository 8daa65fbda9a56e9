"""The engine's type of a key by its configured type."""

from __future__ import annotations

from contracts.config.section import KeyType

SPARK_TYPES: dict[KeyType, str] = {"string": "string", "int64": "bigint", "bool": "boolean"}
