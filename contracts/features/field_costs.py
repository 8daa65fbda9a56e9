"""What a field costs the pre-ranker: measured (`costs.json`) or by formula, and how that becomes the paper's c.

    c_j = g1 o_j + g2 e_j + g3 n_j        arXiv 2105.07706; o computation, e embedding dimension, n number of keys

    without a file    o_j = the configured `cost` of a look-up per candidate; / K of a user's or context field, once a
                      request; 0 of an item field whose part is precomputed
                      e_j = dimensions of its slots,  n_j = keys of its tables
    with a file       o_j = (us_per_request + K us_per_candidate) / (K lookup_us)
                      e_j = bytes_per_key / 4,  n_j = keys

so that a field that costs as much as a plain look-up per candidate has o = 1 in both; K candidates a request. A
measured time whose interval reaches below zero counts as nothing: it was not distinguished from no cost.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from contracts.config.stages import Prerank
from contracts.errors import DataError
from contracts.features.feature_spec import BLOCK_SIDES, FeatureField, FeatureSpec

FILE = "costs.json"
BYTES = 4
ItemSide = Literal["precomputed", "on_request"]


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Interval(Frozen):
    """An estimate with its 95% interval, in microseconds."""

    value: float
    low: float
    high: float

    @property
    def significant_value(self) -> float:
        """The value where the interval lies above zero, else 0."""
        return max(self.value, 0.0) if self.low > 0.0 else 0.0


class FieldCost(Frozen):
    """What was measured of one field: time once a request and per candidate, bytes of a look-up, rows of its tables."""
    us_per_request: Interval
    us_per_candidate: Interval
    bytes_per_key: int
    keys: int


class MeasuredCosts(Frozen):
    """`candidates` K at which a request was measured; `lookup_us`: one look-up of one column, per candidate; `whole`:
    the stage with every field, microseconds per K candidates."""

    date: datetime
    machine: str
    commit: str
    bundle: str
    candidates: int
    lookup_us: float
    whole: dict[ItemSide, Interval]
    fields: dict[ItemSide, dict[str, FieldCost]]

    def write(self, path: Path) -> None:
        path.write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> MeasuredCosts:
        """Raises DataError when the file is missing or is no cost file."""
        try:
            return cls.model_validate(json.loads(path.read_text(encoding="utf-8")))
        except OSError as error:
            raise DataError(f"no costs at {path} ({error.strerror}); run `sluice measure-costs BUNDLE`") from None
        except (ValidationError, json.JSONDecodeError) as error:
            first = str(error).splitlines()[0]
            raise DataError(f"{path} is no cost file ({first}); run `sluice measure-costs BUNDLE`") from None

    def per_1000(self, kept: Collection[str], item_side: ItemSide) -> float:
        """Microseconds of the stage with these fields alone, per 1,000 candidates: the whole less what went."""
        gone = sum(self.microseconds(name, item_side) for name in self.fields[item_side] if name not in kept)
        return (self.whole[item_side].value - gone) * 1000.0 / self.candidates

    def microseconds(self, name: str, item_side: ItemSide) -> float:
        """Of one field, per `candidates` candidates. Raises DataError when it was not measured."""
        found = self.fields[item_side].get(name)
        if found is None:
            raise DataError(f"the cost file measured no field {name!r}; run `sluice measure-costs` on a bundle with it")
        return found.us_per_request.significant_value + self.candidates * found.us_per_candidate.significant_value


def field_keys(field: FeatureField, spec: FeatureSpec) -> int:
    """Rows of the field's own tables; a sequence reads its target's. A statistic: its values, and counted pairs."""
    if field.kind == "statistic" and spec.pair_model:
        values = 0 if spec.pair_model.head == "table" else sum(spec.slot(part).size for part in field.parts)
        return spec.pair_model.entries + values
    return 0 if field.kind == "sequence" else sum(size for _, _, size in field.slots())


def field_bytes(field: FeatureField, spec: FeatureSpec, dim: int) -> int:
    """Of one look-up: a vector per slot, one number for a dense input; a vector of each value for a statistic, and two
    numbers where its pair was counted."""
    if field.kind == "statistic" and spec.pair_model:
        model = spec.pair_model
        if model.head == "table":
            return BYTES * model.dim
        return BYTES * (model.dim * len(field.parts) + 2 * bool(model.entries))
    return BYTES * (dim * max(len(field.slots()), int(field.product)) + int(field.dense))


def costs(spec: FeatureSpec, settings: Prerank, measured: MeasuredCosts | None, candidates: int) -> dict[str, float]:
    """c of every field that a pre-ranker reads; `candidates` K of a request, where nothing was measured."""
    return {field.name: _cost(field, spec, settings, measured, candidates) for field in spec.fields}


def _cost(
    field: FeatureField, spec: FeatureSpec, settings: Prerank, measured: MeasuredCosts | None, candidates: int
) -> float:
    if measured is None:
        computation = _by_formula(field, settings.item_side, candidates)
        dimension, keys = field_bytes(field, spec, settings.embedding_dim) / BYTES, field_keys(field, spec)
    else:
        lookups = measured.candidates * measured.lookup_us
        computation = measured.microseconds(field.name, settings.item_side) / lookups
        known = measured.fields[settings.item_side][field.name]
        dimension, keys = known.bytes_per_key / BYTES, known.keys
    return (settings.computation_weight * computation + settings.dimension_weight * dimension
            + settings.key_weight * keys)


def _by_formula(field: FeatureField, item_side: ItemSide, candidates: int) -> float:
    if field.side in BLOCK_SIDES["request"]:
        return field.cost / candidates
    return 0.0 if field.side == "item" and item_side == "precomputed" else field.cost
