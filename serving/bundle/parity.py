"""Does the server compute what training computed?

The bundle carries sampled rows: raw values, the ids that the feature pipeline wrote for them, and the logits and
probabilities that the ranker gave on those ids. The server encodes the raw values itself, scores in the form in which
it serves (models/inference/split_ranker.py), and compares. A row is a mismatch when any of its ids differs, or its
logit differs by more than 1e-4 (1e-2 for a bf16 bundle).
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import nn

from contracts.artifacts import ID_PREFIX, ROW
from contracts.config.training import Train
from contracts.errors import BundleError, ParityError, SchemaError
from contracts.features.encoding import Encoded, Encoder, number, scale
from contracts.features.feature_spec import BlockName, FeatureSpec, IdSlot
from contracts.summaries.bundle import ParityFigures
from models.evaluation.calibration import Calibration
from models.examples.batches import FeatureBlock
from models.inference import split_ranker
from serving.bundle.raw_columns import column, raw_columns

LOGIT, PROBABILITY = "_logit", "_probability"
FILE = "rows.parquet"


class Inputs(NamedTuple):
    """Both blocks of B rows."""

    request: Encoded
    candidate: Encoded


class Comparison(NamedTuple):
    """`first` is a sentence about the first row that differs, empty when none does."""

    rows: int
    mismatches: int
    max_logit_difference: float
    first: str

    @property
    def figures(self) -> ParityFigures:
        return ParityFigures(
            rows=self.rows, mismatches=self.mismatches, max_logit_difference=self.max_logit_difference)


def tolerance(train: Train) -> float:
    """How far a logit may lie from the stored one."""
    return 1e-2 if train.precision == "bf16" else 1e-4


def write(
    sample: Path, folder: Path, limit: int, spec: FeatureSpec, ranker: nn.Module, calibration: Calibration
) -> None:
    """The first `limit` sampled rows by `_row`, with the ranker's scores on the ids that the pipeline wrote.

    Raises BundleError without rows, SchemaError without a column.
    """
    table = pq.read_table(sample) if sample.exists() else pa.table({ROW: pa.array([], pa.int64())})
    if not table.num_rows:
        raise BundleError(f"{sample} holds no parity rows; run `sluice features` again")
    table = table.sort_by(ROW).slice(0, limit)
    inputs = Inputs(_offline(table, spec, "request", sample), _offline(table, spec, "candidate", sample))
    logits = score(ranker, inputs)
    table = table.append_column(LOGIT, pa.array(logits)).append_column(PROBABILITY, pa.array(calibration.apply(logits)))
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / FILE)


def compare(folder: Path, encoder: Encoder, ranker: nn.Module, calibration: Calibration, limit: float) -> Comparison:
    """Raises BundleError when the bundle has no parity rows: it could not be checked."""
    path = folder / FILE
    if not path.exists():
        raise BundleError(f"the bundle has no {path}, so that its scores cannot be checked; assemble it again")
    table = pq.read_table(path)
    inputs = encode(table, encoder, path)
    wrong_ids = _different_ids(table, inputs, encoder.spec, path)
    served = split_ranker.of(ranker)
    logits = served.logits(served.begin(inputs.request), inputs.candidate)
    probabilities = calibration.apply(logits)
    stored = {name: column(table, name, path).to_numpy() for name in (LOGIT, PROBABILITY)}
    gaps = np.abs(np.stack([logits - stored[LOGIT], probabilities - stored[PROBABILITY]], axis=1))
    # Not `gaps > limit`: a NaN is a mismatch.
    wrong = np.logical_or(wrong_ids.any(axis=1), np.logical_not(gaps <= limit).any(axis=1))
    first = _sentence(table, inputs, encoder.spec, wrong_ids, {LOGIT: logits, PROBABILITY: probabilities}, wrong, path)
    return Comparison(len(wrong), int(wrong.sum()), float(gaps[:, 0].max(initial=0.0)), first)


def check(folder: Path, encoder: Encoder, ranker: nn.Module, calibration: Calibration, limit: float) -> Comparison:
    """Raises ParityError on the first mismatch."""
    compared = compare(folder, encoder, ranker, calibration, limit)
    if compared.mismatches:
        raise ParityError(
            f"{compared.mismatches} of {compared.rows} parity rows differ: {compared.first}. The bundle's parts come "
            "from different runs, or this Sluice encodes otherwise than the one that trained: assemble the bundle again"
        )
    return compared


def encode(table: pa.Table, encoder: Encoder, origin: Path) -> Inputs:
    """The server's own encoding of the raw values."""
    spec = encoder.spec
    raw = {ROW: table.column(ROW).to_numpy(), **raw_columns(table, spec.of_side("user", "context", "item"), origin)}
    request, item = encoder.encode(raw, "user", "context"), encoder.encode(raw, "item")
    places = {slot.name: (request.ids, slot) for slot in spec.block_ids("request")}
    places |= {slot.name: (item.ids, slot) for slot in spec.id_slots("item")}
    parts = {name: places[name][0][:, places[name][1].start] for name in (s.name for s in encoder.part_slots.values())}
    candidate = [item.ids, encoder.cross_ids(parts)] if parts else [item.ids]
    return Inputs(request, Encoded(np.concatenate(candidate, axis=1), item.dense))


def score(ranker: nn.Module, inputs: Inputs) -> np.ndarray:
    """Logits float32 [B]."""
    blocks = [FeatureBlock(torch.from_numpy(part.ids), torch.from_numpy(part.dense)) for part in inputs]
    with torch.inference_mode():
        return ranker(*blocks).float().numpy()


def _offline(table: pa.Table, spec: FeatureSpec, block: BlockName, origin: Path) -> Encoded:
    """The ids that the pipeline wrote; dense inputs are raw in both worlds and scaled by one function."""
    ids = [_stored_ids(table, slot, origin) for slot in spec.block_ids(block)]
    dense = [
        scale(number(column(table, slot.name, origin).to_pylist()), spec.by_name[slot.field])
        for slot in spec.block_dense(block)
    ]
    rows = table.num_rows
    return Encoded(
        np.concatenate([np.empty((rows, 0), dtype=np.int32), *ids], axis=1),
        np.stack(dense, axis=1) if dense else np.empty((rows, 0), dtype=np.float32),
    )


def _stored_ids(table: pa.Table, slot: IdSlot, origin: Path) -> np.ndarray:
    values = column(table, ID_PREFIX + slot.name, origin).to_pylist()
    try:
        return np.array(values, dtype=np.int32).reshape(table.num_rows, slot.width)
    except (TypeError, ValueError):
        raise SchemaError(f"{origin}: column {ID_PREFIX + slot.name!r} does not hold {slot.width} id(s) in every row; "
                          "run `sluice features` again") from None


def _different_ids(table: pa.Table, inputs: Inputs, spec: FeatureSpec, origin: Path) -> np.ndarray:
    """bool [B, number of slots], request slots first."""
    slots = [*spec.block_ids("request"), *spec.block_ids("candidate")]
    blocks = [inputs.request] * len(spec.block_ids("request")) + [inputs.candidate] * len(spec.block_ids("candidate"))
    different = [
        (_stored_ids(table, slot, origin) != block.ids[:, slot.start : slot.start + slot.width]).any(axis=1)
        for slot, block in zip(slots, blocks, strict=True)
    ]
    return np.stack(different, axis=1) if different else np.zeros((table.num_rows, 0), dtype=bool)


def _sentence(
    table: pa.Table, inputs: Inputs, spec: FeatureSpec, wrong_ids: np.ndarray, scores: dict[str, np.ndarray],
    wrong: np.ndarray, origin: Path,
) -> str:
    """What differs first: a slot's ids, else the logit, else the probability."""
    if not wrong.any():
        return ""
    row = int(np.argmax(wrong))
    where = f"row {table.column(ROW)[row].as_py()}"
    if wrong_ids[row].any():
        at, request = int(np.argmax(wrong_ids[row])), spec.block_ids("request")
        encoded = inputs.request if at < len(request) else inputs.candidate
        slot = [*request, *spec.block_ids("candidate")][at]
        offline = _stored_ids(table, slot, origin)[row].tolist()
        here = encoded.ids[row, slot.start : slot.start + slot.width].tolist()
        return f"{where}, slot {slot.name!r}: {offline} offline, {here} here"
    stored = {name: table.column(name)[row].as_py() for name in scores}
    return where + "".join(
        f", {name[1:]} {stored[name]:.6g} offline, {here[row]:.6g} here" for name, here in scores.items())
