"""The co-occurrence graph of field values as Spark leaves it for training: its relations and `manifest.json`.

    FOLDER/nodes/            Parquet: slot, id, impressions, clicks, exposure
    FOLDER/edges/            Parquet: relation (a number in the manifest's order), left, right (ids of their slots),
                             impressions, clicks, exposure, rate
    FOLDER/manifest.json     this file's `GraphManifest`
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError, field_serializer

from contracts.atomic_write import write_json
from contracts.errors import DataError

MANIFEST, NODES, EDGES = "manifest.json", "nodes", "edges"


class Relation(NamedTuple):
    """Slots `left` and `right`; kind "pair" has a rate to be learned, "link" says which `right` values describe `left`
    ones."""

    left: str
    right: str
    kind: Literal["pair", "link"]


class StoredTable(BaseModel):
    """`content_hash` of the rows, whatever their order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: int
    content_hash: str


class GraphManifest(BaseModel):
    """`slots` maps a slot to its number of ids; `rows`, `clicks` and `rate` are those of the window counted.

    Relations are numbered in their order, the pairs first.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    slots: dict[str, int]
    relations: tuple[Relation, ...]
    smoothing: float
    rows: int
    clicks: int
    rate: float
    edges: StoredTable
    nodes: StoredTable

    @field_serializer("relations")
    def _named(self, relations: tuple[Relation, ...]) -> list[dict[str, str]]:
        return [relation._asdict() for relation in relations]

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return self.model_dump(mode="json")

    def write(self, folder: Path) -> None:
        write_json(folder / MANIFEST, self.plain())

    @classmethod
    def read(cls, folder: Path) -> GraphManifest:
        """Raises DataError without a graph, or on a manifest that is not one of ours."""
        path = folder / MANIFEST
        try:
            return cls.model_validate(json.loads(path.read_text(encoding="utf-8")))
        except OSError as error:
            raise DataError(f"no co-occurrence graph in {folder} ({error.strerror}); run `sluice pretrain`") from None
        except (ValidationError, ValueError) as error:
            first = str(error).splitlines()[0]
            raise DataError(f"{path} is no graph's manifest ({first}); run `sluice pretrain` again") from None
