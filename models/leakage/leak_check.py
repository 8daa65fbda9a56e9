"""The leak check: does a field know what was known only after the event? It warns and stops nothing.

    OUT/leaks/summary.json

One tiny model per field (models/leakage/field_alone.py), fitted and evaluated on disjoint parts of a sample of the
training window, and once more on the validation window; the test window is not read. What makes a field suspicious is
in models/leakage/leak_reasons.py. A column that leaks is planted and must be found: where it is not, the rows are too
few to find others.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np

from contracts.artifacts import LABEL, Artifacts
from contracts.config.config import Config
from contracts.features.feature_spec import FeatureSpec
from contracts.progress import counted, report
from contracts.summaries import summary
from contracts.summaries.leaks import FieldFigures, LeaksSummary, SuspectedField
from models.evaluation.metrics import auc
from models.examples.example_files import ExampleFiles
from models.examples.hashed_share import hashed_share
from models.leakage.field_alone import scores, together
from models.leakage.field_columns import FieldColumn, Sample, read
from models.leakage.label_columns import fields_of_the_label
from models.leakage.leak_profile import profile
from models.leakage.leak_reasons import DOMINANT, reasons, standard_error

TRAIN_ROWS, LATER_ROWS = 60_000, 20_000
MOST_ROWS = 600_000  # of the sample of training, where one class is rare
FEWEST = 20  # of each class in each third of the sample
FEWEST_FIELDS = 3  # below, what one field knows alone is no wonder
PLANTED, PLANTED_ERROR = "(planted)", 0.05


def check_for_leaks(config: Config, out: Artifacts) -> LeaksSummary:
    """Writes OUT/leaks/summary.json and returns it; `skipped` says why nothing could be evaluated."""
    begin = time.perf_counter()
    spec = FeatureSpec.read(out.encoding)
    report("rows")
    training = ExampleFiles(out.examples("train"))
    sample = read(training, spec, rows_wanted(training.column(LABEL)), config.seed)
    parts = _thirds(sample)
    found = _too_few(sample, parts)
    if found is None:
        later = read(ExampleFiles(out.examples("validation")), spec, LATER_ROWS, config.seed, sample)
        timed = config.log.event_time is not None
        found = evaluate(sample, parts, later if timed else None, fields_of_the_label(config))
        found = found.model_copy(update={"suspected": _with_profiles(found.suspected, sample, spec, out)})
    found = found.model_copy(update={"seconds": round(time.perf_counter() - begin, 3)})
    summary.write(out.leaks, found)
    return found


def rows_wanted(label: np.ndarray) -> int:
    """TRAIN_ROWS; more, up to MOST_ROWS, until a third holds twice FEWEST of the rarer class of `label` [N]."""
    rarer = min(float(label.mean()), 1 - float(label.mean())) if len(label) else 0.0
    return min(max(TRAIN_ROWS, int(6 * FEWEST / rarer)), MOST_ROWS) if rarer else TRAIN_ROWS


def _thirds(sample: Sample) -> list[np.ndarray]:
    """Masks of three parts by the hash of the row: rates, weights, evaluation."""
    share = hashed_share(sample.row)
    return [(share >= part / 3) & (share < (part + 1) / 3) for part in range(3)]


def _too_few(sample: Sample, parts: list[np.ndarray]) -> LeaksSummary | None:
    least = min(min(int(sample.label[p].sum()), int((1 - sample.label[p]).sum())) for p in parts)
    if least >= FEWEST:
        return None
    return LeaksSummary(
        fields={}, suspected={}, skipped=f"a third of the sampled training rows has {least} of one class; {FEWEST} are "
        "needed to say anything of a field: bring a longer log")


def evaluate(
    sample: Sample, parts: list[np.ndarray], later: Sample | None, label_columns: Mapping[str, str]
) -> LeaksSummary:
    """Figures of every field, the sentences against the suspected ones, and whether the planted column was found.

    `parts` are masks [N] of the rows for rates, weights and evaluation; `later` is None in a table without times, where
    nothing comes after anything; `label_columns` maps a field to the column that it shares with the label.
    """
    inputs = [scores(column, sample.label, parts[0]) for column in counted("fields alone", sample.fields)]
    alone = [figures(column, score, sample, parts[2]) for column, score in zip(sample.fields, inputs, strict=True)]
    report("fields together")
    lost = _irreplaceable(np.column_stack(inputs), alone, sample, parts)
    fields: dict[str, FieldFigures] = {}
    for place, column in enumerate(counted("fields later", sample.fields)):
        more: dict[str, object] = {"irreplaceable": lost.get(place)}
        if later is not None:
            more |= {"later_auc": _later(column, later.fields[place], sample, later, parts[0]),
                     "day_correlation": _with_days(column, sample), "days": len(np.unique(sample.day))}
        fields[column.name] = alone[place].model_copy(update=more)
    why = {name: reasons(found, label_columns.get(name)) for name, found in fields.items()}
    suspected = {name: SuspectedField(reasons=tuple(sentences.values()), kinds=tuple(sentences))
                 for name, sentences in why.items() if sentences}
    return LeaksSummary(rows=len(sample.label), fields=fields, suspected=suspected,
                        planted_found=bool(reasons(_planted(sample, parts))))


def figures(column: FieldColumn, score: np.ndarray, sample: Sample, evaluated: np.ndarray) -> FieldFigures:
    """What the field says alone by its `score` [N] on the rows `evaluated` (mask [N])."""
    label, present = sample.label[evaluated], column.present[evaluated]
    value = auc(label, score[evaluated])
    positives = int(label.sum())
    with_value = {kind: float(present[label == kind].mean()) for kind in (0, 1)}
    return FieldFigures(
        auc=value, standard_error=standard_error(value, positives, len(label) - positives),
        present_positive=with_value[1], present_negative=with_value[0],
    )


def _irreplaceable(
    inputs: np.ndarray, alone: list[FieldFigures], sample: Sample, parts: list[np.ndarray]
) -> dict[int, float]:
    """Column of [N, F] -> share of what all know (AUC above 0.5) that the others do not; of the dominant ones alone."""
    if len(alone) < FEWEST_FIELDS:
        return {}
    label = sample.label[parts[2]]

    def known(columns: np.ndarray) -> float:
        return auc(label, together(columns, sample.label, parts[1], parts[2])) - 0.5

    dominant = [place for place, field in enumerate(alone) if field.auc >= DOMINANT]
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


def _planted(sample: Sample, parts: list[np.ndarray]) -> FieldFigures:
    """A value that is there after nearly every positive and after hardly any negative."""
    wrong = hashed_share(sample.row + 1) < PLANTED_ERROR
    present = (sample.label > 0) ^ wrong
    column = FieldColumn(PLANTED, present.astype(np.int64)[:, None], 2, present)
    return figures(column, scores(column, sample.label, parts[0]), sample, parts[2])


def _with_profiles(
    suspected: Mapping[str, SuspectedField], sample: Sample, spec: FeatureSpec, out: Artifacts
) -> dict[str, SuspectedField]:
    """Every suspected field with what its values say: the picture of the report."""
    columns = {column.name: column for column in sample.fields}
    return {
        name: field.model_copy(
            update={"profile": profile(columns[name], spec.by_name[name], sample.label, out.encoding)})
        for name, field in suspected.items()
    }
