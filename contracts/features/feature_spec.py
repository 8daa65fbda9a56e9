"""The written agreement between pipelines, training and serving: which inputs a model has, and in which column.

A *field* is what the user configured. It becomes *id slots* (int32 ids, embedded) and at most one *dense slot*
(float, scaled). Slots lie in two blocks, because a server fills them at different times:

    request     user fields, then context fields    once per request
    candidate   item fields, then cross fields      once per candidate

Shapes: an id block is [B, sum of widths], a dense block [B, D]. Ids are local to their embedding table:
0 is padding, 1 is unknown, real values start at 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict

from contracts.atomic_write import aside
from contracts.config.section import KeyType, Kind, Side
from contracts.errors import DataError

PADDING, UNKNOWN, FIRST_ID = 0, 1, 2
SPEC_FILE = "feature_spec.json"

BlockName = Literal["request", "candidate"]
BLOCK_SIDES: dict[BlockName, tuple[Side, ...]] = {"request": ("user", "context"), "candidate": ("item", "cross")}


class IdSlot(NamedTuple):
    """`width` columns of ids from `start` on, in the id block of its side; all ids lie below `size`."""

    name: str
    field: str
    side: Side
    table: str
    size: int
    width: int
    start: int
    sequence: bool


class DenseSlot(NamedTuple):
    """Column `start` of the dense block of its side."""
    name: str
    field: str
    side: Side
    start: int


class PairModel(BaseModel):
    """How the statistics of the spec's pairs are computed: everything that a network needs to make room for them.

    head      vectors of two values -> logit of their rate ("dot", "mlp"), or a "table" of observed pairs
    dim       width of a value's vector; a table keeps one number a value, its own rate
    entries   pairs that the table holds; beside vectors: pairs whose counts correct what the head says
    digest    of the pre-trained weights, so that what depends on them is made again with them
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    head: Literal["dot", "mlp", "table"]
    dim: int
    entries: int = 0
    fine_tune: bool = False
    initialise_embeddings: bool = False
    digest: str = ""


class FeatureField(BaseModel):
    """One input as fitted on the training window.

    kind          id slots                                   dense slot
    categorical   NAME (width 1)                             none
    multi_valued  NAME (width `length`, padded right)        none
    sequence      NAME (width `length`, newest first)        none; shares the vocabulary of its target
    numeric       NAME#G for each granularity G              NAME: (log1p?(x) - mean) / std, `default` where missing
    counter       as numeric
    cross         NAME (width 1): mixed radix of the parts' ids, then `vocabulary` or modulo `buckets`; represented as
                  a product it has no slot: models multiply factors of its parts' ids
    statistic     none: the network computes the rate of a pair from the ids of its `parts`, as the spec's
                  `pair_model` says; it is found in no file and in no request
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    kind: Kind | Literal["statistic"]
    side: Side
    key_type: KeyType = "string"
    vocabulary: str | None = None
    size: int = 0
    length: int = 1
    of: str | None = None
    edges: dict[int, tuple[float, ...]] = {}
    log: bool = False
    mean: float = 0.0
    std: float = 1.0
    default: float = 0.0
    parts: tuple[str, ...] = ()
    buckets: int = 0
    representation: Literal["embedding", "product"] = "embedding"
    cost: float = 1.0

    @property
    def dense(self) -> bool:
        """Whether the field is a number: it has a dense slot, and an id slot per granularity."""
        return self.kind in ("numeric", "counter")

    @property
    def product(self) -> bool:
        """Whether the field is a cross that models multiply from factors of its parts."""
        return self.kind == "cross" and self.representation == "product"

    def slots(self) -> list[tuple[str, str, int]]:
        """(slot name, embedding table, table size) of each id slot."""
        if self.dense:
            return [(f"{self.name}#{g}", f"{self.name}#{g}", len(e) + 1 + FIRST_ID) for g, e in self.edges.items()]
        if self.product or self.kind == "statistic":
            return []
        return [(self.name, self.vocabulary or self.name, self.size)]


class FeatureSpec(BaseModel):
    """All fields in their order, plus which roles the log has. Written as feature_spec.json."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    fields: tuple[FeatureField, ...]
    has_users: bool = True
    has_items: bool = True
    has_position: bool = False
    has_bid: bool = False
    positions: int = 0
    pair_model: PairModel | None = None

    @cached_property
    def by_name(self) -> dict[str, FeatureField]:
        return {field.name: field for field in self.fields}

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As pydantic's, which would also copy what `by_name` has cached of the old fields."""
        made = super().model_copy(update=update, deep=deep)
        made.__dict__.pop("by_name", None)
        return made

    def of_side(self, *sides: Side) -> list[FeatureField]:
        """Fields of these sides: sides in the given order, fields in the spec's order."""
        return [field for side in sides for field in self.fields if field.side == side]

    def crosses(self) -> list[FeatureField]:
        """Crosses with ids of their own."""
        return [field for field in self.fields if field.kind == "cross" and not field.product]

    def pair_rates(self) -> list[FeatureField]:
        return [field for field in self.fields if field.kind == "statistic"]

    def id_slots(self, *sides: Side) -> list[IdSlot]:
        """Slots of these sides as laid out side by side from column 0."""
        slots, start = [], 0
        for field in self.of_side(*sides):
            for name, table, size in field.slots():
                slots.append(
                    IdSlot(name, field.name, field.side, table, size, field.length, start, field.kind == "sequence")
                )
                start += field.length
        return slots

    def dense_slots(self, *sides: Side) -> list[DenseSlot]:
        """Slots of these sides as laid out side by side from column 0."""
        fields = [field for field in self.of_side(*sides) if field.dense]
        return [DenseSlot(field.name, field.name, field.side, start) for start, field in enumerate(fields)]

    def block_ids(self, block: BlockName) -> list[IdSlot]:
        return self.id_slots(*BLOCK_SIDES[block])

    def block_dense(self, block: BlockName) -> list[DenseSlot]:
        return self.dense_slots(*BLOCK_SIDES[block])

    def products(self) -> list[FeatureField]:
        """Crosses that models represent as a product of factors of their parts."""
        return [field for field in self.fields if field.product]

    def id_width(self, *sides: Side) -> int:
        return sum(slot.width for slot in self.id_slots(*sides))

    def tables(self) -> dict[str, int]:
        """Embedding tables and their sizes; a sequence and its target share one."""
        return {slot.table: slot.size for slot in self.id_slots("user", "context", "item", "cross")}

    def slot(self, name: str) -> IdSlot:
        """The slot where it stands among those of all sides. Raises DataError when there is none of this name."""
        for slot in self.id_slots("user", "context", "item", "cross"):
            if slot.name == name:
                return slot
        raise DataError(f"the feature spec has no id slot {name!r}")

    def write(self, folder: Path) -> None:
        """Replaces the folder's spec in one rename."""
        with aside(folder / SPEC_FILE) as draft:
            draft.write_text(self.model_dump_json(indent=1), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> FeatureSpec:
        try:
            return cls.model_validate_json((folder / SPEC_FILE).read_text(encoding="utf-8"))
        except OSError as error:
            raise DataError(
                f"no feature spec at {folder / SPEC_FILE} ({error.strerror}); run `sluice features` first"
            ) from None
