"""Processes that try settings until time or trials run out; one process works where it was asked for."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess

import optuna
import torch

from models.distributed import data_parallel
from models.tuning.objective import Objective, TuningTask
from models.tuning.study import carry_out, next_trial, open_study

LOOK_SECONDS = 0.5
MOST_FAILURES = 5  # one after another
SEED_STEP = 1000  # between the samplers of two processes


def count_of(wanted: int | None, device: str) -> int:
    """A process per core that this one may use; one where a GPU computes."""
    if wanted is not None:
        return wanted
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores if data_parallel.resolve_device(device).type == "cpu" else 1


def search(task: TuningTask, processes: int, look: Callable[[optuna.Study], None]) -> list[int]:
    """Returns the exit codes of processes that failed. `look` is called now and then, with the study."""
    if processes == 1:
        _work(task, 0, look)
        return []
    context = multiprocessing.get_context("spawn")
    threads = max(1, torch.get_num_threads() // processes)
    workers: list[BaseProcess] = [
        context.Process(target=_start, args=(task, number, threads), name=f"tune-{number}", daemon=True)
        for number in range(processes)]
    try:
        for worker in workers:
            worker.start()
        study = open_study(task.folder, task.study, task.seed)
        while any(worker.is_alive() for worker in workers):
            time.sleep(LOOK_SECONDS)
            look(study)
    finally:
        for worker in workers:
            if worker.is_alive():
                worker.terminate()
            worker.join()
    return [worker.exitcode for worker in workers if worker.exitcode]


def _start(task: TuningTask, number: int, threads: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    torch.set_num_threads(threads)
    _work(task, number)


def _work(task: TuningTask, number: int, look: Callable[[optuna.Study], None] | None = None) -> None:
    """A trial that fails is no reason to end: its settings may be what failed. Several in a row are: nothing trains."""
    study = open_study(task.folder, task.study, task.seed)
    study = open_study(task.folder, task.study, task.seed + SEED_STEP * number + len(study.trials))
    objective = Objective(task)
    failures = 0
    while time.time() < task.deadline and failures < MOST_FAILURES:
        trial = next_trial(study, task.folder, task.most)
        if trial is None:
            return
        failures = 0 if carry_out(study, trial, objective) else failures + 1
        if look is not None:
            look(study)
