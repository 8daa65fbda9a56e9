"""Where the fit of a retrieval model stands, kept on disk, so that it goes on in the middle of an epoch and ends in the
bits of a fit that nobody disturbed.

Kept are the modules, Adam's moments, the best state so far, and torch's generator as it stood when the epoch began (its
order is drawn from that) and as it stands now. Of one process; models/distributed/run_checkpoint.py has the files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from models.distributed.run_checkpoint import Kept, RunCheckpoint, State
from models.distributed.world import ALONE
from models.interactions.validation import BestEpoch
from models.training.run_state import random_states, restore_random_states

ADAM, BEST, STARTED = "adam", "best", "epoch_start"


class FitProgress(Kept):
    """`batch` batches of `epoch` are done, with `total` loss over `rows`; `updates` since the start; the best
    validation so far."""

    epoch: int = 1
    batch: int = 0
    total: float = 0.0
    rows: int = 0
    updates: int = 0
    best_epoch: int = 0
    best_figure: float = -1.0


class KeptFit(contextlib.AbstractContextManager["KeptFit"]):
    """Of `modules` by name, moved by `adam`; without `kept` it does nothing. Open while a SIGTERM is to be heard."""

    def __init__(
        self, kept: RunCheckpoint | None, modules: Mapping[str, nn.Module], adam: torch.optim.Optimizer,
        best: BestEpoch[dict[str, Tensor]],
    ) -> None:
        self.kept, self.modules, self.adam, self.best = kept, modules, adam, best
        self._started = torch.get_rng_state()

    def __enter__(self) -> KeptFit:
        if self.kept:
            self.kept.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self.kept:
            self.kept.__exit__(kind, *rest)

    def take_up(self) -> FitProgress:
        """Where the newest checkpoint stands, whose state is taken over; the start where there is none."""
        found = self.kept.latest(FitProgress) if self.kept else None
        if self.kept is None or found is None:
            return FitProgress()
        groups: dict[str, dict[str, Tensor]] = {ADAM: {}, BEST: {}, **{name: {} for name in self.modules}}
        for name, tensor in self.kept.read_dense().items():
            group, _, rest = name.partition(".")
            groups[group][rest] = tensor
        for name, module in self.modules.items():
            module.load_state_dict(groups[name])
        self._load_adam(groups[ADAM])
        self.best.epoch, self.best.figure, self.best.state = found.best_epoch, found.best_figure, groups[BEST]
        return found

    def _load_adam(self, moments: Mapping[str, Tensor]) -> None:
        plain = self.adam.state_dict()
        for name, tensor in moments.items():
            number, _, key = name.partition(".")
            plain["state"].setdefault(int(number), {})[key] = tensor.reshape(()) if key == "step" else tensor
        self.adam.load_state_dict(plain)

    def begin_epoch(self, now: FitProgress) -> None:
        """Before its order is drawn: torch's generator as it stood then."""
        if self.kept and now.batch:
            torch.set_rng_state(self.kept.read_own(STARTED, ALONE))
        self._started = torch.get_rng_state()

    def go_on(self, now: FitProgress) -> None:
        """After its order is drawn: the generator as it stood after the batches that are done."""
        if self.kept and now.batch:
            restore_random_states(self.kept, ALONE)

    def keep(self, now: FitProgress) -> None:
        """After a batch. Raises SluiceError where this process was told to end, once all is written."""
        wish = self.kept.wish(ALONE) if self.kept else 0.0
        if self.kept and wish:
            reached = now.model_copy(update={"best_epoch": self.best.epoch, "best_figure": self.best.figure})
            self.kept.keep(wish, reached, self._state(), ALONE, f"batch {now.batch} of epoch {now.epoch}")

    def _state(self) -> State:
        parts = {name: module.state_dict() for name, module in self.modules.items()}
        parts[BEST] = self.best.state if self.best.epoch else {}
        tensors = {f"{group}.{name}": tensor for group, part in parts.items() for name, tensor in part.items()}
        for number, moments in self.adam.state_dict()["state"].items():
            tensors |= {f"{ADAM}.{number}.{name}": tensor for name, tensor in moments.items()}
        return State({}, tensors, random_states() | {STARTED: self._started})
