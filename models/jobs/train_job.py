"""The train job: all rankers, the two towers, the pre-ranker, further channels of retrieval, the choice of the ranker,
freshness; one summary.

Restartable: a model whose settings, feature spec, examples and seed are as in its folder's summary is kept as it is.
Under torchrun every process fits, and the first alone writes files and tracking.
"""

from __future__ import annotations

import time

from pydantic import TypeAdapter

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.progress import OnProgress
from contracts.summaries import summary
from contracts.summaries.train import (
    ChannelSummary,
    CoOccurrence,
    Freshness,
    FreshnessFigures,
    LightgbmSummary,
    RankerSummary,
    TrainSummary,
)
from models.distributed import data_parallel
from models.jobs.channel_training import check_channels, train_channels
from models.jobs.lightgbm_baseline import lightgbm_figures
from models.jobs.ranker_choice import TRIVIAL, Choice, best_network, check_ranker, choose_ranker, unlike_models
from models.jobs.ranker_training import train_ranker
from models.jobs.resume import forget_other_runs
from models.jobs.retrieval_training import PRE_RANKER, TOWER, train_retrieval
from models.jobs.training_task import TrainingTask, open_task
from models.layers.embedding import item_slot
from models.pair_rates.buckets import co_occurrence
from models.training.warm_start import Parent


def train_models(
    config: Config, out: Artifacts, *, seed: int | None = None, on_progress: OnProgress | None = None,
    force: bool = False, parent: Parent | None = None, resume: bool = False,
) -> TrainSummary:
    """Trains what `config.train` names and writes OUT/models/summary.json, which it also returns.

    `on_progress(model, batches done, batches in all)`; `force` trains again what is there already; `parent` is the
    bundle whose weights training starts from; `resume` takes up an unfinished model's checkpoint. Raises OneClassError
    when a window holds one class, ConfigError when no model may be the ranker or a channel cannot be trained.
    """
    check_ranker(config)
    check_channels(config)
    begin = time.perf_counter()
    world = data_parallel.join(data_parallel.resolve_device(config.train.device))
    with open_task(config, out, seed=seed, on_progress=on_progress, force=force, parent=parent, resume=resume,
                   silent=world.rank > 0) as task:
        forget_other_runs(
            task, [*unlike_models(config.train, task.spec), TOWER, PRE_RANKER], config.retrieve.channels)
        found = _train_all(task)
    found = found.model_copy(update={"seconds": time.perf_counter() - begin})
    data_parallel.by_first(lambda: summary.write(out.out / "models", found))
    data_parallel.leave()
    return found


def _train_all(task: TrainingTask) -> TrainSummary:
    names = unlike_models(task.config.train, task.spec)
    models: dict[str, RankerSummary] = {name: train_ranker(task, name) for name in names}
    ranker, reason = _choose(task, models)
    retrieval = train_retrieval(task) if item_slot(task.spec) else None
    return TrainSummary(
        models={name: figures.model_copy(update={"curves": None, "digest": None}) for name, figures in models.items()},
        ranker=ranker,
        ranker_reason=reason,
        two_tower=retrieval.two_tower if retrieval else None,
        pre_ranker=retrieval.pre_ranker if retrieval else None,
        channels=_channels(task),
        freshness=_freshness(task, ranker, models) if task.config.features.also_fresh else None,
        co_occurrence=_co_occurrence(task, models),
        outside=data_parallel.summary_by_first(lambda: lightgbm_figures(task), LightgbmSummary),
        seed=task.seed,
        parent=task.parent.manifest.version if task.parent else None,
    )


def _channels(task: TrainingTask) -> dict[str, ChannelSummary]:
    plain = data_parallel.by_first(lambda: {name: made.plain() for name, made in train_channels(task).items()})
    return {name: ChannelSummary.model_validate(made) for name, made in plain.items()}


def _co_occurrence(task: TrainingTask, models: dict[str, RankerSummary]) -> CoOccurrence:
    kind = TypeAdapter(CoOccurrence)
    plain = data_parallel.by_first(
        lambda: kind.dump_python(co_occurrence(task.out, task.spec, models), mode="json"))
    return kind.validate_python(plain)


def _choose(task: TrainingTask, models: dict[str, RankerSummary]) -> Choice:
    ranker, reason = data_parallel.by_first(lambda: tuple(choose_ranker(task, models)))
    return Choice(ranker, reason)


def _freshness(task: TrainingTask, ranker: str, models: dict[str, RankerSummary]) -> Freshness:
    """Of the ranker; of the best network where popularity is served, which reads no feature that could be fresher."""
    popular = ranker == TRIVIAL and set(models) - {TRIVIAL}
    name = data_parallel.by_first(lambda: best_network(task, models)) if popular else ranker
    fresh = train_ranker(task, name, fresh=True)
    return Freshness(published=_fresh_figures(models[name]), fresh=_fresh_figures(fresh))


def _fresh_figures(ranker: RankerSummary) -> FreshnessFigures:
    return FreshnessFigures(auc=ranker.auc, auc_standard_error=ranker.auc_standard_error, gauc=ranker.gauc,
                            log_loss=ranker.log_loss)
