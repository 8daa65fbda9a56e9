"""The tune job: settings of the rankers, searched on the training and validation windows within a budget of time.

    OUT/tuning/study.db  logits/  tuned.toml  summary.json

Settings are chosen by half 0 of the validation window. What was chosen is held against the configured settings on half
1, and written down only where it gains more there than its standard error: the best of many is lucky, too. A search
that was stopped, or has time for more, goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from optuna import Study
from optuna.trial import TrialState

from contracts.artifacts import Artifacts
from contracts.bundle.bundle import load_array
from contracts.config.config import Config
from contracts.config.training import Train
from contracts.errors import ConfigError, SluiceError
from contracts.features.feature_spec import FeatureSpec
from contracts.progress import OnProgress
from contracts.summaries import summary
from contracts.summaries.train import SettingValue, TrialFigures, TuneSummary
from models.evaluation.bootstrap import Bootstrap
from models.jobs.ranker_choice import TRIVIAL
from models.tracking.tracking import Tracker
from models.tuning import objective, search_space, study, tuned_config, workers
from models.tuning.gain import gain
from models.tuning.objective import TuningTask
from models.tuning.trial_log import TrialLog, figures

WRITTEN = "tuned.toml"
NO_LIMIT = 2**31


def tune(
    config: Config, text: str, out: Artifacts, *, budget: int, trials: int | None = None, models: Sequence[str] = (),
    processes: int | None = None, seed: int | None = None, on_progress: OnProgress | None = None,
) -> TuneSummary:
    """`text` is that of the configuration's file; `budget` in seconds; `trials` at most in all, earlier ones included;
    `models` instead of those configured. `on_progress(what, seconds gone, budget)`.

    Raises ConfigError for models or numbers that make no search, OneClassError for a window of one class, or a
    GAUC of too few users, SluiceError where the budget ends before the configured settings were tried, or another
    search works in the folder.
    """
    begin, seed = time.time(), config.seed if seed is None else seed
    _check({"budget, in seconds,": budget, "number of trials": trials, "number of processes": processes})
    names = tuple(dict.fromkeys(models)) or _searched(config)
    search_space.check_models(names)
    spec = FeatureSpec.read(out.encoding)
    rows = objective.check_windows(out, spec, config.train.monitor)
    spaces = {name: search_space.space_of(name, config.train, rows) for name in names}
    task = TuningTask(
        config=config, out=out, spec=spec, seed=seed, rows=rows, spaces=spaces, deadline=begin + budget,
        study=study.digest(config, out, spec, seed, spaces), most=NO_LIMIT if trials is None else trials)
    with study.only_one(out.tuning), Tracker(out.out, config.name) as tracker:
        log = TrialLog(task, tracker, begin, on_progress)
        searched, died = _search(task, workers.count_of(processes, config.train.device), log)
        found = _judge(task, searched, text, died)
        found = found.model_copy(update={"seconds": time.time() - begin})
        log.outcome(found, out.tuning / WRITTEN)
    summary.write(out.tuning, found)
    return found


def _check(numbers: dict[str, int | None]) -> None:
    for name, value in numbers.items():
        if value is not None and value < 1:
            raise ConfigError(f"the {name} is {value}; give at least 1")


def _searched(config: Config) -> tuple[str, ...]:
    """The configured ranker, or all networks that it is chosen from."""
    train = config.train
    return tuple(name for name in train.models if name != TRIVIAL) if train.ranker == "best" else (train.ranker,)


def _search(task: TuningTask, processes: int, log: TrialLog) -> tuple[Study, list[int]]:
    """The study, and the exit codes of processes that died."""
    searched = study.open_study(task.folder, task.study, task.seed)
    study.close_running(searched)
    study.enqueue_configured(searched, {
        name: search_space.configured(space, task.config.train, task.rows) for name, space in task.spaces.items()})
    died = workers.search(task, processes, log)
    study.close_running(searched)
    log(searched)
    return searched, died


def _judge(task: TuningTask, searched: Study, text: str, died: list[int]) -> TuneSummary:
    """The best settings against the configured ones, and the file."""
    train, winner, configured = task.config.train, study.best(searched), study.best(searched, configured=True)
    if winner is None or configured is None:
        raise SluiceError(_nothing_ended(task, searched, died))
    unseen = objective.half(task.out, task.spec, 1)
    ours, theirs = (load_array(objective.logits_file(task.folder, task.study, trial.number))
                    for trial in (winner, configured))
    gained = gain(unseen, ours, theirs, train.monitor, task.seed, task.config.features.negative_rate)
    adopted = gained.value > gained.standard_error
    best, before = figures(winner, task), figures(configured, task)
    settings = _changed(task, best)
    models = (*train.models, best.model) if adopted and best.model not in train.models else train.models
    written = tuned_config.write(
        task.folder / WRITTEN, text,
        ({**settings, **({"models": models} if models != train.models else {})}) if adopted else {})
    return TuneSummary(
        monitor=train.monitor, best=best, configured=before, gain=gained.value, adopted=adopted, seconds=0.0,
        gain_standard_error=gained.standard_error, reason=_reason(best, before, gained, train, adopted),
        settings=settings if adopted else {}, rows=task.rows, written=str(written),
        importances=study.importances(searched, best.model or ""),
        trials=tuple(figures(trial, task) for trial in study.ended(searched)))


def _changed(task: TuningTask, best: TrialFigures) -> dict[str, SettingValue]:
    """Settings of the trial that are other than the configured ones (an unset `batch_size` is what it comes to), and
    `ranker` where that names a model which they are not of."""
    train, model = task.config.train, str(best.model)
    before = search_space.read(search_space.configured(task.spaces[model], train, task.rows))
    changed = {name: value for name, value in best.settings.items() if value != before[name]}
    return changed if train.ranker in ("best", model) else {**changed, "ranker": model}


def _reason(best: TrialFigures, before: TrialFigures, gained: Bootstrap, train: Train, adopted: bool) -> str:
    worth = (f"{gained.value:+.4f} ± {gained.standard_error:.4f} of {train.monitor.replace('_', ' ')} against "
             f"{before.model} as configured, on the half of validation that no trial has seen")
    if adopted:
        named = "" if train.ranker in ("best", best.model) else (
            f' With them train.ranker is "{best.model}", not "{train.ranker}" as before, whose settings they are not.')
        return f"The settings found, of {best.model}, are written: they gain {worth}.{named}"
    stay = "The settings stay as configured:"
    if best.number == before.number:
        return f"{stay} none of the settings tried is better than those of {before.model}."
    return f"{stay} the best that were found, of {best.model}, gain no more than chance gives ({worth})."


def _nothing_ended(task: TuningTask, searched: Study, died: list[int]) -> str:
    failed = searched.get_trials(states=(TrialState.FAIL,))
    why = next((trial.user_attrs[study.ERROR] for trial in reversed(failed) if study.ERROR in trial.user_attrs), None)
    if why is not None:
        return f"no training with the configured settings came to its end: {why}"
    if died:
        return (f"{len(died)} process(es) of the search died with exit code(s) {', '.join(map(str, died))} before the "
                "configured settings were tried; give fewer --processes if memory ran out")
    return (f"the budget was spent before one training of {', '.join(task.spaces)} with the configured settings on "
            f"{task.rows} rows came to its end; give a longer --budget (epochs that were cut are trained again)")
