"""The platform's sequence encoder on a plan: its own batches, loop and network, its best epoch the last.

    run(PLAN)       PLAN: a file of benchmarks/peers/sequence_plan.py
"""

from __future__ import annotations

import resource
from pathlib import Path

import numpy as np
import torch

from benchmarks.peers.plan import Outcome
from benchmarks.peers.sequence_plan import LISTED, SequenceLog, SequencePlan
from models.interactions.evaluate import rank
from models.interactions.interactions import Interactions
from models.interactions.splits import leave_one_out
from models.sequences.encoder import EncoderSettings
from models.sequences.sequence_retriever import SequenceRetriever, SequenceSettings


def run(path: str) -> None:
    """Trains, and writes recommendations and outcome."""
    plan = SequencePlan.read(path)
    torch.set_num_threads(plan.threads)
    log = SequenceLog.read(plan.rows)
    split = leave_one_out(Interactions(log.offsets, log.items, log.table))
    retriever = SequenceRetriever(settings_of(plan, log.table), plan.seed)
    fitted = retriever.fit(split._replace(train=split.test.history))
    np.save(Path(plan.out, "test.npy"), rank(retriever, split.test, lists=LISTED).lists)
    seconds = log.predictions(plan.length) * plan.epochs / fitted.rows_per_second
    Outcome(rows_per_second=fitted.rows_per_second, seconds_to_best=seconds, epochs=plan.epochs, best_epoch=plan.epochs,
            peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024).write(plan.out)


def settings_of(plan: SequencePlan, table: int) -> SequenceSettings:
    """All that the plan does not say is by default. It is validated once, after the last epoch."""
    encoder = EncoderSettings(width=plan.width, blocks=plan.blocks, heads=plan.heads, length=plan.length,
                              dropout=plan.dropout)
    return SequenceSettings(encoder=encoder, negatives=plan.negatives or table, epochs=plan.epochs,
                            validate_every=plan.epochs, batch=plan.batch, learning_rate=plan.learning_rate)
