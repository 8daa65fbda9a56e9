"""Which ranker is served: the best network on validation, unless popularity is as good for all that chance tells.

Where the log has positions, AUC compares rows that were shown at the same one. Logits are those of position 1, labels
were observed where a row stood: between positions a model that takes what the place did for what the item did, as
popularity does of items with a usual place, would look better than one that has learned both.

    gain = AUC(best network) - AUC(popularity) on the validation window; its standard error by the bootstrap over users
           and items, which all rows of one of them speak for together; items that training did not know, which share
           an id, are a unit each row
    lead = AUC(best network) - AUC(a simpler one); its standard error by the bootstrap over users, rows without users

A network that gains no more than its standard error is not served: what knows less cannot be wrong about more. One that
leads a simpler one by no more than its standard error is served all the same, and the reason names the simplest such:
what AUC on the rows that were shown does not tell apart may differ in what it would show, and how much of a request's
time that is worth is the user's matter.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from contracts.artifacts import LABEL, POSITION, USER, VALIDATION_LOGITS
from contracts.bundle.bundle import load_array
from contracts.config.config import Config
from contracts.config.training import Train
from contracts.errors import ConfigError
from contracts.features.feature_spec import UNKNOWN, FeatureSpec
from contracts.summaries.train import RankerSummary
from models.evaluation.bootstrap import Bootstrap, auc_bootstrap, auc_within, of_each_class
from models.jobs.training_task import TrainingTask
from models.layers.embedding import item_slot
from models.networks import registry

TRIVIAL = "popularity"
TWINS = ("din", "din_sequence")  # of the DNN, where no field is a sequence
DRAWS, ROWS = 100, 200_000  # of the bootstrap; rows that it is of, at most


class Choice(NamedTuple):
    """`reason` is a sentence, or two."""

    ranker: str
    reason: str


def check_ranker(config: Config) -> None:
    """Raises ConfigError where the ranker named is not trained, or there is none to choose."""
    named, wanted = config.train.models, config.train.ranker
    if wanted != "best" and wanted not in named:
        raise ConfigError(f"train.ranker is {wanted!r}, which is not among train.models {list(named)}; add it there")
    if wanted == "best" and not set(named) - {TRIVIAL}:
        raise ConfigError(f"train.models is {list(named)}, which leaves train.ranker = 'best' nothing to choose; add a "
                          f"model, such as 'dcn_v2', or give train.ranker = '{TRIVIAL}'")


def unlike_models(train: Train, spec: FeatureSpec) -> list[str]:
    """Those of `train.models`, without a DIN that would be the DNN once more: they differ by sequences alone."""
    if "dnn" not in train.models or any(field.kind == "sequence" for field in spec.fields):
        return list(train.models)
    return [name for name in train.models if name not in TWINS or name == train.ranker]


def choose_ranker(task: TrainingTask, models: Mapping[str, RankerSummary]) -> Choice:
    """The configured ranker; else by validation AUC, popularity among the candidates where it was trained."""
    wanted = task.config.train.ranker
    if wanted != "best":
        return Choice(wanted, f"{wanted} is served because train.ranker names it.")
    if set(models) == {TRIVIAL}:
        return Choice(TRIVIAL, f"{TRIVIAL} is served: nothing else was trained.")
    best = best_network(task, models)
    worth = f"validation AUC{_where(task)} {_worth(task, models, best):.4f}"
    if TRIVIAL in models:
        gain = _lead(task, best, TRIVIAL, of_items=True)
        worth += (f", {gain.value:+.4f} ± {gain.standard_error:.4f} against {TRIVIAL}'s "
                  f"{_worth(task, models, TRIVIAL):.4f}")
        if gain.value <= gain.standard_error:
            return Choice(
                TRIVIAL, f"{TRIVIAL} is served: the best network, {best}, gains no more than chance gives ({worth}).")
    return Choice(best, f"{best} is served: the best on validation ({worth}).{_level(task, models, best)}")


def _level(task: TrainingTask, models: Mapping[str, RankerSummary], best: str) -> str:
    """A further sentence where a simpler network is as good for all that chance tells; else nothing."""
    for name in registry.names()[: registry.names().index(best)]:
        if name in models and name != TRIVIAL:
            lead = _lead(task, best, name, of_items=False)
            if lead.value <= lead.standard_error:
                return (f" {name}, which is simpler, is level with it ({lead.value:.4f} ± {lead.standard_error:.4f} "
                        f"behind): train.ranker = \"{name}\" serves it.")
    return ""


def best_network(task: TrainingTask, models: Mapping[str, RankerSummary]) -> str:
    """By validation AUC, popularity apart."""
    return max((name for name in models if name != TRIVIAL), key=lambda name: _worth(task, models, name))


def _worth(task: TrainingTask, models: Mapping[str, RankerSummary], name: str) -> float:
    """Validation AUC, within positions where there are any."""
    logits = _logits(task, name) if task.spec.has_position else None
    return models[name].validation_auc if logits is None else validation_auc(task, logits)


def _where(task: TrainingTask) -> str:
    return " within positions" if task.spec.has_position else ""


def _logits(task: TrainingTask, name: str) -> np.ndarray:
    return load_array(task.out.model(name) / VALIDATION_LOGITS)


def validation_auc(task: TrainingTask, logits: np.ndarray) -> float:
    """Of logits [N] of the validation window, within positions where there are any. Raises OneClassError."""
    validation = task.examples("validation")
    return auc_within(validation.column(LABEL), logits, _positions(task))


def _positions(task: TrainingTask) -> np.ndarray | None:
    return task.examples("validation").column(POSITION) if task.spec.has_position else None


def _lead(task: TrainingTask, name: str, other: str, *, of_items: bool) -> Bootstrap:
    ours, theirs = (_logits(task, model) for model in (name, other))
    return paired_lead(task, ours, theirs, of_items=of_items)


def paired_lead(task: TrainingTask, ours: np.ndarray, theirs: np.ndarray, *, of_items: bool) -> Bootstrap:
    """AUC of one model's logits [N] of the validation window less that of another's; `of_items`: items are drawn,
    too."""
    validation, slot = task.examples("validation"), item_slot(task.spec) if of_items else None
    labels, positions = validation.column(LABEL), _positions(task)
    rows = of_each_class(labels, ROWS)
    users = validation.column(USER)[rows] if task.spec.has_users else np.arange(len(rows))
    items = None if slot is None else _units(validation.column(slot.name)[rows])
    return auc_bootstrap(labels[rows], ours[rows], users, items=items, baseline=theirs[rows], draws=DRAWS,
                         within=None if positions is None else positions[rows], seed=task.seed)


def _units(items: np.ndarray) -> np.ndarray:
    """[N] item ids, and a number of its own for each row without one: an id of all new items would be drawn as one."""
    ids = items.astype(np.int64)
    return np.where(ids > UNKNOWN, ids, -1 - np.arange(len(ids)))
