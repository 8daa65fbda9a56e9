"""Where a training run stands, on disk every so many minutes, so that it goes on after a crash, a SIGTERM or a reboot.

    FOLDER/000002/progress.json        epoch, batches done in it, losses so far (`Progress`)
                 /dense.safetensors    what all processes hold alike, with the moments
                 /NAME.RANK.npy        the rows of one process of a table, of its moments, of its best weights

A checkpoint is written aside and renamed once every process has written its part; of earlier ones KEPT stay. Another
number of processes takes it up as well: row r = l old + s of process s is row r // new of process r % new, which is an
arithmetic progression of l (gcd of both numbers), so that files are read in strides and never as a whole.
"""

from __future__ import annotations

import json
import math
import shutil
import signal
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from contracts.atomic_write import to_disk, write_json
from contracts.bundle.bundle import load_weights, save_weights
from contracts.summaries.summary import Record
from contracts.summaries.train import EpochFigures
from models.distributed.data_parallel import by_first, wait_for_all
from models.distributed.world import World

KEPT = 2
PROGRESS, DENSE = "progress.json", "dense.safetensors"
STOP = 1024.0  # the wish of a process that was told to end, so that no sum of clocks reaches it


class Progress(Record):
    """`batch` batches of `epoch` are done, with `total` loss over `count` terms; `history` of the epochs before it.
    `digest` is that of the run, `processes` how many wrote."""

    epoch: int = 1
    batch: int = 0
    total: float = 0.0
    count: float = 0.0
    history: tuple[EpochFigures, ...] = ()
    processes: int = 1
    digest: str = ""


class State(NamedTuple):
    """`rows`: tensors of which every process holds its own rows; `dense`: those that are the same in all."""

    rows: Mapping[str, Tensor]
    dense: Mapping[str, Tensor]


class RunCheckpoint:
    """Of one model's run in `folder`, every `seconds` and at SIGTERM; `resume` takes up what is there.

    `digest` names settings, examples and seed: the checkpoint of another run is no one's to take up.
    """

    def __init__(self, folder: Path, seconds: float, digest: str = "", resume: bool = False) -> None:
        self.folder, self.seconds, self.digest, self.resume = folder, seconds, digest, resume
        self._last, self._told = time.monotonic(), False
        self._before: Any = signal.SIG_DFL

    def __enter__(self) -> RunCheckpoint:
        self._last = time.monotonic()
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGTERM, self._tell)
        return self

    def __exit__(self, *_: object) -> None:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._before)

    def _tell(self, _: int, __: FrameType | None) -> None:
        self._told = True

    def wish(self, world: World) -> float:
        """What this process adds to the wishes of all: the first one's clock, and whoever was told to end."""
        due = world.rank == 0 and time.monotonic() - self._last >= self.seconds
        return STOP * self._told + due

    def latest(self) -> Progress | None:
        """Of this run; None where there is none, or a new start is wanted."""
        folders = self._folders() if self.resume else []
        found = by_first(lambda: json.loads((folders[-1] / PROGRESS).read_text("utf-8")) if folders else None)
        made = None if found is None else Progress.model_validate(found)
        return made if made is not None and made.digest == self.digest else None

    def write(self, progress: Progress, state: State, world: World) -> None:
        """All processes together."""
        number = by_first(lambda: 1 + max([int(path.name) for path in self._folders()], default=0))
        draft = self.folder / f".{number:06d}"
        by_first(lambda: self._emptied(draft))
        for name, rows in state.rows.items():
            np.save(draft / f"{name}.{world.rank}.npy", rows.detach().cpu().numpy(), allow_pickle=False)
        if world.rank == 0:
            save_weights(draft / DENSE, {name: tensor.detach().cpu().numpy() for name, tensor in state.dense.items()})
        wait_for_all()
        made = progress.model_copy(update={"processes": world.size, "digest": self.digest})
        by_first(lambda: self._publish(draft, made))
        self._last = time.monotonic()

    def read_dense(self) -> dict[str, Tensor]:
        """Of the newest checkpoint."""
        stored = load_weights(self._folders()[-1] / DENSE)
        return {name: torch.from_numpy(array) for name, array in stored.items()}

    def read_rows(self, name: str, target: Tensor, processes: int, world: World) -> bool:
        """Fills `target`, this process's rows, from the newest checkpoint; False where it has none of that name."""
        folder = self._folders()[-1]
        if not (folder / f"{name}.0.npy").exists():
            return False
        for part in range(processes):
            stored = np.load(folder / f"{name}.{part}.npy", mmap_mode="c", allow_pickle=False)
            deal(stored, part, processes, target.detach(), world)
        return True

    def clear(self) -> None:
        """The run has ended, or begins anew: nothing is left to take up."""
        by_first(lambda: shutil.rmtree(self.folder, ignore_errors=True))

    def _folders(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("[0-9]*") if (path / PROGRESS).exists())

    @staticmethod
    def _emptied(draft: Path) -> None:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)

    def _publish(self, draft: Path, progress: Progress) -> None:
        write_json(draft / PROGRESS, progress.plain())
        for path in draft.iterdir():
            to_disk(path)
        draft.rename(draft.with_name(draft.name[1:]))
        to_disk(self.folder)
        for old in self._folders()[:-KEPT]:
            shutil.rmtree(old)


def deal(stored: np.ndarray, part: int, processes: int, target: Tensor, world: World) -> None:
    """Copies what process `part` of `processes` stored of a table into this process's rows of it."""
    step = world.size // math.gcd(world.size, processes)
    for first in range(step):
        row = first * processes + part
        if row % world.size == world.rank:
            rows = torch.from_numpy(np.asarray(stored[first::step]))
            target[row // world.size :: step * processes // world.size][: len(rows)].copy_(rows)
