"""One ranker from settings to files: fit, calibrate, evaluate, save, track.

    FOLDER/weights.safetensors  calibration.safetensors  validation_logits.npy  test_logits.npy  test_rows.npy
           training.png  summary.json

A finished folder is taken as it is (models/jobs/resume.py). Of several processes all fit, and the first alone reads and
writes the folder.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from contracts.artifacts import (
    CALIBRATION,
    FRESH,
    LABEL,
    POSITION,
    ROW,
    TEST_LOGITS,
    TEST_ROWS,
    USER,
    VALIDATION_LOGITS,
    WEIGHTS,
)
from contracts.bundle.bundle import save_array, save_weights
from contracts.summaries import summary
from contracts.summaries.train import FitFigures, PositionFigures, RankerSummary
from models.distributed import data_parallel
from models.evaluation import calibration, plots
from models.evaluation.bootstrap import auc_bootstrap
from models.evaluation.calibration_metrics import ece, predicted_over_observed_by
from models.evaluation.evaluate import evaluate
from models.evaluation.metrics import require_both_classes
from models.evaluation.novelty import by_novelty
from models.evaluation.slot_calibration import position_logit, telling
from models.examples.batches import ExampleSet
from models.examples.validation_half import halves
from models.jobs.carried_weights import CarriedWeights
from models.jobs.fitted_model import FittedModel, of_members
from models.jobs.model_calibration import calibrate
from models.jobs.model_tracking import end_run, log_epochs, start_run
from models.jobs.resume import clear_runs, digest, finished, kept_run, take_summary_away
from models.jobs.training_task import TrainingTask
from models.layers.own_rows import dealt
from models.networks import registry
from models.pair_rates import weights as pair_weights
from models.tracking.tracking import TrackedRun
from models.training import checkpoint, fitting
from models.training.progress import batch_counter

PICTURE = "training.png"
DRAWS = 100
SEED_STEP = 10_000  # between the members of an ensemble: those of runs with neighbouring seeds are different ones


def train_ranker(task: TrainingTask, name: str, fresh: bool = False) -> RankerSummary:
    """`fresh` trains on the event-fresh twins, in a folder of that suffix.

    Raises OneClassError with the counts when the training or test window or the calibration half is of one class.
    """
    folder_name = name + FRESH if fresh else name
    known = finished(task, folder_name, RankerSummary)
    if known is not None:
        return known
    data_parallel.by_first(lambda: _require_both_classes(task, fresh))
    take_summary_away(task, folder_name)
    run = start_run(task, folder_name)
    model = _fit(task, name, folder_name, fresh, run)
    return data_parallel.summary_by_first(lambda: _finish(task, model, fresh, run), RankerSummary)


def _require_both_classes(task: TrainingTask, fresh: bool) -> None:
    for window in (task.examples("train", fresh), task.examples("test", fresh)):
        require_both_classes(window.column(LABEL), str(window.folder))
    validation = task.examples("validation", fresh)
    require_both_classes(validation.column(LABEL)[halves(validation) == 1],
                         f"{validation.folder} (the half that calibrates)")


def _fit(
    task: TrainingTask, name: str, folder_name: str, fresh: bool, run: TrackedRun
) -> FittedModel[torch.nn.Module]:
    count = 1 if name == "popularity" else task.config.train.ensemble
    members = [_fit_one(task, name, folder_name, fresh, run, number) for number in range(count)]
    return members[0] if count == 1 else of_members(members)


def _fit_one(
    task: TrainingTask, name: str, folder_name: str, fresh: bool, run: TrackedRun, number: int
) -> FittedModel[torch.nn.Module]:
    """The epochs of the first member are those that are tracked."""
    settings, seed = task.config.train, task.seed + number * SEED_STEP
    torch.manual_seed(seed)
    with dealt(*data_parallel.current()):
        network = registry.build(name, task.spec, settings)
    carried = CarriedWeights(task, name, lambda spec, config: registry.build(name, spec, config.train),
                            ensembled=True)
    pair_weights.load_into(network, task.spec, task.out.pair_rates)
    fit = fitting.fit(
        network, task.examples("train", fresh), task.early_stopping(fresh), settings, seed,
        positions=task.spec.positions, start=carried, on_epoch=None if number else log_epochs(run),
        on_batch=batch_counter(task.on_progress, folder_name, settings.epochs),
        kept=kept_run(task, folder_name, number), negative_rate=task.config.features.negative_rate,
    )
    return FittedModel(folder_name, network, fit, carried.figures)


def _finish(
    task: TrainingTask, model: FittedModel[torch.nn.Module], fresh: bool, run: TrackedRun
) -> RankerSummary:
    """Evaluates the model and writes its files, the summary last."""
    folder = task.out.model(model.name)
    found = _evaluated(task, model, fresh, folder)
    checkpoint.save(model.network, folder / WEIGHTS)
    if plots.available():
        plots.write(folder / PICTURE, model.name, found)
    quality = found.model_dump(exclude=set(FitFigures.model_fields))
    run.metrics({name: value for name, value in quality.items() if isinstance(value, int | float)}, found.epochs)
    end_run(task, run, (folder / WEIGHTS, folder / CALIBRATION, folder / PICTURE))
    summary.write(folder, found)
    clear_runs(task, model.name)
    return found


def _evaluated(
    task: TrainingTask, model: FittedModel[torch.nn.Module], fresh: bool, folder: Path
) -> RankerSummary:
    """Calibrates, reads the test window once, saves the curve and the test logits."""
    bias = model.fit.position_bias
    curve, validation_auc, validation_logits = calibrate(task, model.network, bias, fresh)
    test = task.examples("test", fresh)
    logits, labels = fitting.predict(model.network, test), test.column(LABEL)
    users = test.column(USER) if task.spec.has_users else None
    at_position = position_logit(test, bias)
    draws, rows = test.log_draws(), telling(test, bias, np.ones(test.rows, dtype=bool))
    figures = evaluate(logits, labels, users, curve, position_logit=at_position, log_draws=draws,
                       where=str(test.folder), telling=rows)
    as_trained = calibration.identity(task.config.features.negative_rate).apply(logits + at_position, draws)
    groups = users if users is not None else np.arange(test.rows)
    save_array(folder / VALIDATION_LOGITS, validation_logits)
    save_array(folder / TEST_LOGITS, logits)
    save_array(folder / TEST_ROWS, test.column(ROW))
    save_weights(folder / CALIBRATION, curve.arrays())
    return RankerSummary(
        **dict(figures), **dict(model.figures(digest(task, model.name))),
        auc_standard_error=auc_bootstrap(labels, logits, groups, draws=DRAWS, seed=task.seed).standard_error,
        ece_uncalibrated=ece(labels[rows], as_trained[rows]), validation_auc=validation_auc, position_bias=tuple(bias),
        by_position=_by_position(test, curve.apply(logits + at_position, draws)) if task.spec.has_position else None,
        by_novelty=by_novelty(task.examples("train", fresh), test, logits),
    )


def _by_position(test: ExampleSet, probabilities: np.ndarray) -> dict[str, PositionFigures]:
    """Predicted over observed per slot: far from 1 where the position bias does not explain the clicks."""
    slices = predicted_over_observed_by(test.column(LABEL), probabilities, test.column(POSITION))
    return {position: PositionFigures(**part._asdict()) for position, part in slices.items()}
