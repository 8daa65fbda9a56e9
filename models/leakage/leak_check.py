"""The leak check: does a field know what was known only after the event? It warns and stops nothing.

    OUT/leaks/summary.json

One tiny model per field (models/leakage/field_alone.py), fitted and judged on disjoint parts of a sample of the
training window, and once more on the validation window; the test window is not read. What makes a field suspicious is
in models/leakage/leak_reasons.py. A column that leaks is planted and must be found: where it is not, the rows are too
few to find others.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from contracts import summary
from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.features.feature_spec import FeatureSpec
from models.evaluation.metrics import auc
from models.examples.batches import ExampleSet
from models.examples.window_part import hashed_share
from models.leakage.field_alone import scores, together
from models.leakage.field_columns import FieldColumn, Sample, read
from models.leakage.label_columns import fields_of_the_label
from models.leakage.leak_profile import profile
from models.leakage.leak_reasons import DOMINANT, Figures, reasons, standard_error

TRAIN_ROWS, LATER_ROWS = 60_000, 20_000
FEWEST = 20  # of each class in each third of the sample
FEWEST_FIELDS = 3  # below, what one field knows alone is no wonder
PLANTED, PLANTED_ERROR = "(planted)", 0.05


def run(config: Config, out: Artifacts) -> dict[str, Any]:
    """Writes OUT/leaks/summary.json and answers it: `fields`, `suspected`, `planted_found`; or why it was `skipped`."""
    begin = time.perf_counter()
    spec = FeatureSpec.read(out.encoding)
    sample = read(ExampleSet(out.examples("train"), spec), spec, TRAIN_ROWS, config.seed)
    parts = _thirds(sample)
    found = _too_few(sample, parts)
    if not found:
        later = read(ExampleSet(out.examples("validation"), spec), spec, LATER_ROWS, config.seed, sample)
        timed = config.log.event_time is not None
        found = judge(sample, parts, later if timed else None, fields_of_the_label(config))
        _describe(found, sample, spec, out)
    found["seconds"] = round(time.perf_counter() - begin, 3)
    summary.write(out.leaks, found)
    return found


def _thirds(sample: Sample) -> list[np.ndarray]:
    """Masks of three parts by the hash of the row: rates, weights, judgement."""
    share = hashed_share(sample.row)
    return [(share >= part / 3) & (share < (part + 1) / 3) for part in range(3)]


def _too_few(sample: Sample, parts: list[np.ndarray]) -> dict[str, Any]:
    least = min(min(int(sample.label[p].sum()), int((1 - sample.label[p]).sum())) for p in parts)
    if least >= FEWEST:
        return {}
    return {"skipped": f"a third of the sampled training rows has {least} of one class; {FEWEST} are needed to judge "
            "a field: bring a longer log", "suspected": {}, "fields": {}}


def judge(
    sample: Sample, parts: list[np.ndarray], later: Sample | None, label_columns: dict[str, str]
) -> dict[str, Any]:
    """Figures of every field, the sentences against the suspected ones, and whether the planted column was found.

    `later` is None in a table without times, where nothing comes after anything.
    """
    inputs = [scores(column, sample.label, parts[0]) for column in sample.fields]
    judged = [figures(column, score, sample, parts[2]) for column, score in zip(sample.fields, inputs, strict=True)]
    lost = _irreplaceable(np.column_stack(inputs), judged, sample, parts)
    told, found = {}, {}
    for place, (column, alone) in enumerate(zip(sample.fields, judged, strict=True)):
        one = alone._replace(irreplaceable=lost.get(place))
        if later is not None:
            one = one._replace(later_auc=_later(column, later.fields[place], sample, later, parts[0]),
                               day_correlation=_with_days(column, sample), days=len(np.unique(sample.day)))
        found[column.name] = one._asdict()
        told[column.name] = reasons(one, label_columns.get(column.name))
    return {
        "rows": len(sample.label),
        "fields": found,
        "suspected": {name: {"reasons": list(why.values()), "kinds": list(why)} for name, why in told.items() if why},
        "planted_found": bool(reasons(_planted(sample, parts))),
    }


def figures(column: FieldColumn, score: np.ndarray, sample: Sample, judged: np.ndarray) -> Figures:
    """What the field says alone on the rows `judged` (mask)."""
    label, present = sample.label[judged], column.present[judged]
    value = auc(label, score[judged])
    positives = int(label.sum())
    error = standard_error(value, positives, len(label) - positives)
    with_value = {kind: float(present[label == kind].mean()) for kind in (0, 1)}
    return Figures(value, error, None, with_value[1], with_value[0], None, None, 0)


def _irreplaceable(
    inputs: np.ndarray, judged: list[Figures], sample: Sample, parts: list[np.ndarray]
) -> dict[int, float]:
    """Column of [N, F] -> share of what all know (AUC above 0.5) that the others do not; of the dominant ones alone."""
    if len(judged) < FEWEST_FIELDS:
        return {}
    label = sample.label[parts[2]]

    def known(columns: np.ndarray) -> float:
        return auc(label, together(columns, sample.label, parts[1], parts[2])) - 0.5

    dominant = [place for place, one in enumerate(judged) if one.auc >= DOMINANT]
    every = known(inputs) if dominant else 0.0
    return {place: (every - known(np.delete(inputs, place, axis=1))) / every for place in dominant}


def _later(column: FieldColumn, after: FieldColumn, sample: Sample, later: Sample, fit: np.ndarray) -> float | None:
    """AUC on later rows of the rates of `fit`; None where they are of one class."""
    if not 0 < later.label.sum() < len(later.label):
        return None
    both = FieldColumn(column.name, np.concatenate([column.codes, after.codes]), column.size, column.present)
    label = np.concatenate([sample.label, later.label])
    known = np.concatenate([fit, np.zeros(len(later.label), dtype=bool)])
    return auc(later.label, scores(both, label, known)[len(sample.label) :])


def _with_days(column: FieldColumn, sample: Sample) -> float | None:
    """Spearman's rank correlation of a number with the day of its row; counters of Sluice's own may grow with time."""
    if column.values is None or column.own_count or column.present.sum() < FEWEST:
        return None
    ranks = [_ranks(column.values[column.present]), _ranks(sample.day[column.present].astype(np.float64))]
    if min(float(np.std(rank)) for rank in ranks) == 0.0:
        return None
    return float(np.corrcoef(ranks)[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    """Mean ranks: ties share theirs."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[inverse]


def _planted(sample: Sample, parts: list[np.ndarray]) -> Figures:
    """A value that is there after nearly every positive and after hardly any negative."""
    wrong = hashed_share(sample.row + 1) < PLANTED_ERROR
    present = (sample.label > 0) ^ wrong
    column = FieldColumn(PLANTED, present.astype(np.int64)[:, None], 2, present)
    return figures(column, scores(column, sample.label, parts[0]), sample, parts[2])


def _describe(found: dict[str, Any], sample: Sample, spec: FeatureSpec, out: Artifacts) -> None:
    """Adds to every suspected field what its values say: the picture of the report."""
    columns = {column.name: column for column in sample.fields}
    for name, entry in found["suspected"].items():
        entry["profile"] = profile(columns[name], spec.by_name[name], sample.label, out.encoding)
