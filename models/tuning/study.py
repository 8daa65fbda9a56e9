"""The study in OUT/tuning/study.db: Optuna's own storage, in which a search goes on where it was stopped.

A study is named by the digest of all that its scores depend on: another configuration, other examples or another
search space begin another study in the same file. Only one search at a time works in a folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import optuna
from optuna.trial import FrozenTrial, TrialState

from contracts.artifacts import Artifacts
from contracts.bundle import bundle
from contracts.config.config import Config
from contracts.errors import SluiceError
from contracts.features.feature_spec import FeatureSpec
from models.tuning.search_space import Space

DATA_BASE, LOCK, ASKING = "study.db", ".lock", ".asking"
CONFIGURED, CUT, ERROR, TRACKED = "configured", "cut", "error", "tracked"  # attributes of trials, and of the study
SEEN = ("train", "validation")  # the windows that a search reads
LOCKED_SECONDS = 120  # that one process waits for another to write
LAYOUT = 3  # of what is kept beside the study; one of another layout is not gone on with
STARTUP, WARMUP = 4, 1  # trials that nothing prunes; epochs of every other


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Raises SluiceError while another process is in the block for this folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SluiceError(f"another `sluice tune` is at work in {folder}; wait for it, or give another --out"
                              ) from None
        yield


def digest(config: Config, out: Artifacts, spec: FeatureSpec, seed: int, spaces: Mapping[str, Space]) -> str:
    """Of settings, feature spec, examples, pair rates, seed and search space."""
    folders = [*(out.examples(window) for window in SEEN), out.pair_rates]
    paths = sorted(path for folder in folders for path in folder.rglob("*")
                   if path.suffix in (".parquet", ".safetensors"))
    files = [(path.relative_to(out.out).as_posix(), bundle.digest(path)) for path in paths]
    settings = config.train.model_dump(mode="json", exclude={"models", "ranker", "warm_start"})
    parts = [settings, config.features.negative_rate, spec.model_dump(mode="json"), seed, spaces, files, LAYOUT]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def open_study(folder: Path, name: str, seed: int) -> optuna.Study:
    """Made where it is not there. `seed` is that of the sampler, which must be another one in every process."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    storage = optuna.storages.RDBStorage(
        f"sqlite:///{folder.resolve() / DATA_BASE}", engine_kwargs={"connect_args": {"timeout": LOCKED_SECONDS}})
    return optuna.create_study(
        storage=storage, study_name=name, direction="maximize", load_if_exists=True,
        sampler=optuna.samplers.TPESampler(seed=seed),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=STARTUP, n_warmup_steps=WARMUP))


def close_running(study: optuna.Study) -> None:
    """Trials of processes that are no more have failed."""
    for trial in study.get_trials(states=(TrialState.RUNNING,)):
        study.tell(trial.number, state=TrialState.FAIL)


def enqueue_configured(study: optuna.Study, parameters: Mapping[str, Mapping[str, object]]) -> None:
    """The settings as they are, of each model (a key), unless they wait to be tried, or were."""
    states = (TrialState.WAITING, TrialState.COMPLETE)
    known = {trial.user_attrs.get(CONFIGURED) for trial in study.get_trials(states=states)}
    for model, values in parameters.items():
        if model not in known:
            study.enqueue_trial({"model": model, **values}, user_attrs={CONFIGURED: model})


def next_trial(study: optuna.Study, folder: Path, most: int) -> optuna.Trial | None:
    """None when `most` have started. One process asks at a time: SQLite gives the same waiting trial to two that ask at
    the same moment."""
    with (folder / ASKING).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        return study.ask() if started(study) < most else None


def carry_out(study: optuna.Study, trial: optuna.Trial, objective: Callable[[optuna.Trial], float]) -> bool:
    """Whether the trial came to an end of its own, pruned or not; a SluiceError is none. Other errors go on to the
    caller, when the trial has failed."""
    try:
        score = objective(trial)
    except optuna.TrialPruned:
        study.tell(trial, state=TrialState.PRUNED)
        return True
    except (Exception, KeyboardInterrupt) as error:
        study.tell(trial, state=TrialState.FAIL)
        if isinstance(error, SluiceError):
            return False
        raise
    return study.tell(trial, score).state is TrialState.COMPLETE


def started(study: optuna.Study) -> int:
    """Trials that run or ran, apart from those that failed, or that time cut short: a longer search has theirs."""
    states = (TrialState.RUNNING, TrialState.COMPLETE, TrialState.PRUNED)
    return sum(CUT not in trial.user_attrs for trial in study.get_trials(deepcopy=False, states=states))


def ended(study: optuna.Study) -> list[FrozenTrial]:
    """Whatever their end was, in the order of their numbers."""
    states = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)
    return [trial for trial in study.get_trials(states=states) if "model" in trial.params]


def best(study: optuna.Study, configured: bool = False) -> FrozenTrial | None:
    """Of all trials that came to an end, or of the configured ones alone."""
    ended = study.get_trials(states=(TrialState.COMPLETE,))
    kept = [trial for trial in ended if not configured or CONFIGURED in trial.user_attrs]
    return max(kept, key=lambda trial: (trial.value, -trial.number), default=None)


def importances(study: optuna.Study, model: str) -> dict[str, float]:
    """Of the settings of one model, by functional ANOVA over its ended trials; empty where they say too little."""
    ended = [trial for trial in study.get_trials(states=(TrialState.COMPLETE,)) if trial.params["model"] == model]
    if len(ended) < STARTUP or len({trial.value for trial in ended}) == 1:
        return {}
    kept = optuna.create_study(direction="maximize")
    kept.add_trials(ended)
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
    found = optuna.importance.get_param_importances(kept, evaluator=evaluator)
    return {name: float(share) for name, share in found.items() if name != "model"}
