"""Whether rankers read the pair rates: only where these pay on the run's own windows.

    gain    AUC of a DNN trained with them, less that of one trained without, on the validation window: settings and
            seed are those of `sluice train`; its standard error by the bootstrap over users, rows without users
    pay     gain > its standard error

What does not pay is left out of the feature spec, so that no ranker spends inputs and time on what its own days teach
it as well, or on what held long ago.
"""

from __future__ import annotations

import hashlib
import json
import time
from dataclasses import replace

import numpy as np
import torch

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.progress import OnProgress
from contracts.summaries import summary
from contracts.summaries.pair_rates import PairRateJudgement, PairRatesSummary
from models.jobs import resume
from models.jobs.ranker_choice import paired_lead, validation_auc
from models.jobs.training_task import TrainingTask, open_task
from models.networks import registry
from models.pair_rates import weights as pair_weights
from models.training import fitting
from models.training.progress import batch_counter

JUDGE = "dnn"  # cheap, and it sees crosses of values only by what it learns of them


def choose_pair_rates(
    config: Config, out: Artifacts, found: PairRatesSummary, seed: int | None = None,
    on_progress: OnProgress | None = None,
) -> PairRatesSummary:
    """Names those of `found` in the feature spec where they pay, and without `pair_rates.judge` anyway; with their
    judgement, which is kept where nothing that it depends on has changed. Raises what training raises."""
    if found.pair_model is None or not config.pair_rates.judge:
        judged = found.model_copy(update={"judgement": None})
    else:
        with open_task(config, out, seed=seed, on_progress=on_progress, silent=True) as task:
            judged = found.model_copy(update={"judgement": _judgement(task, found)})
    if judged != found:
        summary.write(out.pair_rates, judged)
    pair_weights.name_in_spec(out, judged)
    return judged


def _judgement(task: TrainingTask, found: PairRatesSummary) -> PairRateJudgement:
    assert found.pair_model is not None
    plain = replace(task, spec=pair_weights.without_pair_rates(task.spec))
    rated = replace(task, spec=pair_weights.with_pair_rates(plain.spec, found.pairs, found.pair_model))
    digest = hashlib.sha256(json.dumps([resume.digest(rated, JUDGE), found.digest]).encode()).hexdigest()
    if found.judgement is not None and found.judgement.digest == digest:
        return found.judgement
    begin = time.perf_counter()
    without, with_them = _logits(plain, "without pair rates"), _logits(rated, "with pair rates")
    lead = paired_lead(task, with_them, without, of_items=False)
    return PairRateJudgement(
        ranker=JUDGE, auc_with=validation_auc(task, with_them), auc_without=validation_auc(task, without),
        gain=lead.value, standard_error=lead.standard_error, pays=lead.value > lead.standard_error, digest=digest,
        seconds=round(time.perf_counter() - begin, 1),
    )


def _logits(task: TrainingTask, what: str) -> np.ndarray:
    """[N] of the validation window, by a DNN that reads what the task's spec names."""
    settings = task.config.train
    torch.manual_seed(task.seed)
    network = registry.build(JUDGE, task.spec, settings)
    pair_weights.load_into(network, task.spec, task.out.pair_rates)
    fitting.fit(network, task.examples("train"), task.early_stopping(), settings, task.seed,
                positions=task.spec.positions, on_batch=batch_counter(task.on_progress, what, settings.epochs),
                negative_rate=task.config.features.negative_rate)
    return fitting.predict(network, task.examples("validation"))
