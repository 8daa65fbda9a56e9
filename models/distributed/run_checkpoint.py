"""Where a training run stands, on disk every so many minutes, so that it goes on after a crash, a SIGTERM or a reboot.

    FOLDER/000002/progress.json        where the run stands (`Kept` and what a job adds), and which run it is
                 /dense.safetensors    what all processes hold alike, with the moments
                 /NAME.RANK.npy        the rows of one process of a table, of its moments, of its best weights
                 /own.NAME.RANK.npy    what is one process's alone: the states of its random generators

A checkpoint is written aside and renamed once every process has written its part; the KEPT newest stay, three are there
while one is written. One that cannot be written (a full disk) leaves those before it whole and ends the run. Another
number of processes takes it up as well: row r = l old + s of process s is row r // new of process r % new, which is an
arithmetic progression of l (gcd of both numbers), so that files are read in strides and never as a whole.
"""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import signal
import threading
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from pydantic import BaseModel, Field
from safetensors import SafetensorError
from torch import Tensor

from contracts.atomic_write import to_disk, write_json
from contracts.bundle.bundle import load_weights, save_weights
from contracts.errors import ConfigError, DataError, SluiceError
from contracts.summaries.summary import Record
from contracts.summaries.train import EpochFigures
from models.distributed.data_parallel import by_first, wait_for_all
from models.distributed.world import World

# Of the files; 3 had biases that are not trained among what is dense, which is told by its number, 2 the values of pair
# rates, 1 no states of random generators.
FORMAT = 4
KEPT = 2
CHECKPOINTS = "checkpoints"  # the folder's name, beside what the run makes
PROGRESS, DENSE, OWN = "progress.json", "dense.safetensors", "own."
STOP = 1024.0  # the wish of a process that was told to end, so that no sum of clocks reaches it
NAMED = 3  # differences between two runs that a refusal names
SHOWN = 80  # characters of a value that it repeats
Identity = Mapping[str, str]


class Kept(Record):
    """`identity`: name -> value of all that the weights of the run depend on; `processes`: how many wrote."""

    format: int = FORMAT
    processes: int = 1
    identity: dict[str, str] = Field(default_factory=dict)


class Progress(Kept):
    """`batch` batches of `epoch` are done, with `total` loss over `count` terms; `history` of the epochs before it."""

    epoch: int = 1
    batch: int = 0
    total: float = 0.0
    count: float = 0.0
    history: tuple[EpochFigures, ...] = ()

    @property
    def mean(self) -> float:
        """Loss a term."""
        return self.total / max(self.count, 1.0)


Reached = TypeVar("Reached", bound=Kept)
Result = TypeVar("Result")


class State(NamedTuple):
    """`rows`: tensors of which every process holds its own rows; `dense`: those that are the same in all; `own`: those
    of each process alone."""

    rows: Mapping[str, Tensor]
    dense: Mapping[str, Tensor]
    own: Mapping[str, Tensor] = {}


class RunCheckpoint:
    """Of one run in `folder`, every `seconds` and at SIGTERM; `resume` takes up what is there.

    `identity` is what `Kept` says; `command` is the one that takes an optional `--resume`. `alone`: this process works
    by itself, and others wait until it is done.
    """

    def __init__(
        self, folder: Path, seconds: float, identity: Identity, resume: bool = False, command: str = "sluice train",
        alone: bool = False,
    ) -> None:
        self.folder, self.seconds, self.identity, self.resume = folder, seconds, dict(identity), resume
        self.command, self.alone = command, alone
        self._last, self._told = time.monotonic(), False
        self._before: Any = signal.SIG_DFL

    def __enter__(self) -> RunCheckpoint:
        self._last = time.monotonic()
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGTERM, self._tell)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """A SIGTERM that came after the last look at it is sent again, to whoever handled it before."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._before)
            if self._told and kind is None:
                signal.raise_signal(signal.SIGTERM)

    def _tell(self, _: int, __: FrameType | None) -> None:
        self._told = True

    def wish(self, world: World) -> float:
        """What this process adds to the wishes of all: the first one's clock, and whoever was told to end."""
        due = world.rank == 0 and time.monotonic() - self._last >= self.seconds
        return STOP * self._told + due

    def _by_first(self, action: Callable[[], Result]) -> Result:
        return action() if self.alone else by_first(action)

    def fits(self) -> bool:
        """Whether there is a checkpoint of this very run."""
        newest = self._folders()[-1:]
        try:
            found = [json.loads((folder / PROGRESS).read_text("utf-8")) for folder in newest]
            return [(each["format"], each["identity"]) for each in found] == [(FORMAT, self.identity)]
        except (KeyError, OSError, TypeError, ValueError):
            return False

    def latest(self, kind: type[Reached]) -> Reached | None:
        """Of this run; None where there is none, or a new start is wanted. Raises ConfigError for another run's,
        DataError for one that is damaged."""
        folders = self._folders() if self.resume else []
        text = self._by_first(lambda: (folders[-1] / PROGRESS).read_text("utf-8") if folders else None)
        if text is None:
            return None
        try:
            found = json.loads(text)
            theirs = found["identity"] | {"format": str(found["format"])}
            self._refuse_another(theirs, {**self.identity, "format": str(FORMAT)})
            return kind.model_validate(found)
        except (KeyError, TypeError, ValueError) as error:
            why = " ".join(str(error).split())
            raise DataError(f"{folders[-1]} is no checkpoint of this version of Sluice ({why:.200}); run "
                            f"`{self.command}` without --resume, which begins anew") from None

    def _refuse_another(self, theirs: Identity, ours: Identity) -> None:
        names = [name for name in sorted(ours.keys() | theirs.keys()) if ours.get(name) != theirs.get(name)]
        if names:
            said = [f"{name} ({theirs.get(name, 'nothing')} there, {ours.get(name, 'nothing')} now)"
                    for name in names[:NAMED]]
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            raise ConfigError(
                f"--resume: the checkpoint in {self.folder} is of another run, which differs in {', '.join(said)}"
                f"{more}; make them as they were, or run `{self.command}` without --resume, which begins anew")

    def write(self, progress: Kept, state: State, world: World) -> None:
        """All processes together. Raises SluiceError where it cannot be written; those before it stay whole."""
        number = self._by_first(lambda: 1 + max([int(path.name) for path in self._folders()], default=0))
        draft = self.folder / f".{number:06d}"
        try:
            self._by_first(lambda: self._emptied(draft))
            self._write_part(draft, state, world)
            if not self.alone:
                wait_for_all()
            made = progress.model_copy(update={"processes": world.size, "identity": self.identity})
            self._by_first(lambda: self._publish(draft, made))
        except (OSError, SafetensorError) as error:
            shutil.rmtree(draft, ignore_errors=True)
            raise SluiceError(self._unwritten(number, error)) from error
        self._last = time.monotonic()

    def keep(self, wish: float, progress: Kept, state: State, world: World, where: str) -> None:
        """Does what was wished for: a checkpoint, after which it raises SluiceError where anybody was told to end."""
        if wish:
            self.write(progress, state, world)
        if wish >= STOP:
            raise SluiceError(f"{self.command} was told to stop (SIGTERM) after {where}; {self.folder} holds a "
                              f"checkpoint, from which `{self.command} --resume` goes on")

    @staticmethod
    def _write_part(draft: Path, state: State, world: World) -> None:
        """What this process has to write."""
        for name, tensor in [*state.rows.items(), *((OWN + name, tensor) for name, tensor in state.own.items())]:
            np.save(draft / f"{name}.{world.rank}.npy", tensor.detach().cpu().numpy(), allow_pickle=False)
        if world.rank == 0:
            save_weights(draft / DENSE, {name: tensor.detach().cpu().numpy() for name, tensor in state.dense.items()})

    def _unwritten(self, number: int, error: Exception) -> str:
        before = self._folders()
        kept = (f"{before[-1]} before it is whole, and `{self.command} --resume` goes on from there" if before else
                "there is none before it")
        free = shutil.disk_usage(self.folder).free / 1e6
        return (f"checkpoint {number} in {self.folder} cannot be written ({error}; {free:.1f} MB are free there): "
                f"{kept}; make room for it first")

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

    def has_own(self, name: str, world: World) -> bool:
        """Whether `read_own` finds it."""
        return self._own(name, world).exists()

    def read_own(self, name: str, world: World) -> Tensor:
        """What this process, of as many as there were, kept of its own."""
        return torch.from_numpy(np.load(self._own(name, world), allow_pickle=False))

    def _own(self, name: str, world: World) -> Path:
        return self._folders()[-1] / f"{OWN}{name}.{world.rank}.npy"

    def clear(self) -> None:
        """What the run made is written: nothing is left to take up."""
        self._by_first(lambda: shutil.rmtree(self.folder, ignore_errors=True))

    def _folders(self) -> list[Path]:
        return sorted(path for path in self.folder.glob("[0-9]*") if (path / PROGRESS).exists())

    def _emptied(self, draft: Path) -> None:
        """Drafts of processes that died go too."""
        for old in self.folder.glob(".[0-9]*"):
            shutil.rmtree(old, ignore_errors=True)
        draft.mkdir(parents=True)

    def _publish(self, draft: Path, progress: Kept) -> None:
        write_json(draft / PROGRESS, progress.plain())
        for path in draft.iterdir():
            to_disk(path)
        draft.rename(draft.with_name(draft.name[1:]))
        to_disk(self.folder)
        for old in self._folders()[:-KEPT]:
            shutil.rmtree(old)


def named(section: str, settings: BaseModel, without: Collection[str] = ()) -> dict[str, str]:
    """An `Identity` of settings, one by one."""
    values = settings.model_dump(mode="json", exclude=set(without))
    return {f"{section}.{name}": short(value) for name, value in values.items()}


def short(value: object) -> str:
    """As JSON where that can be repeated, else a hash of it."""
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= SHOWN else hashlib.sha256(text.encode()).hexdigest()[:12]


def deal(stored: np.ndarray, part: int, processes: int, target: Tensor, world: World) -> None:
    """Copies what process `part` of `processes` stored of a table into this process's rows of it."""
    step = world.size // math.gcd(world.size, processes)
    for first in range(step):
        row = first * processes + part
        if row % world.size == world.rank:
            rows = torch.from_numpy(np.asarray(stored[first::step]))
            target[row // world.size :: step * processes // world.size][: len(rows)].copy_(rows)
