"""Where training computes: on which device, and in how many processes.

Several processes train one model: torchrun starts them, each takes its share of every batch, gradients are added up per
batch (models/distributed/gradient_sum.py). `train.batch_size` is that of all processes together and the learning rate
stays as it is, so that a run of two processes makes the updates of a run of one. Batch normalisation alone sees the
statistics of a process's own share.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from contracts.errors import ConfigError
from contracts.summaries.summary import Summary
from models.distributed import exchange, long_turns, shared_memory
from models.distributed.world import ALONE, World
from models.distributed.yielding_threads import yielding

LONGEST = timedelta(days=2)  # that one process may work while the others wait; torchrun notices the death of one
_control: dist.ProcessGroup | None = None  # on CPUs, for words and long waits: tensors travel in the default group
Result = TypeVar("Result")
Made = TypeVar("Made", bound=Summary | None)


def resolve_device(name: str) -> torch.device:
    """'auto' takes a GPU where there is one. Raises ConfigError for an unknown device, or one this machine lacks."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"train.device is {name!r}; use 'auto', 'cpu' or 'cuda'") from None
    if device.type not in ("cpu", "cuda"):
        raise ConfigError(f"train.device is {name!r}; use 'auto', 'cpu' or 'cuda'")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"train.device is {name!r}, this machine has {torch.cuda.device_count()} GPUs; use 'auto'")
    return device


def join(device: torch.device) -> World:
    """Rank and size from torchrun's variables, (0, 1) without them. Joins the group once (NCCL on GPUs, else gloo)."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return ALONE
    if device.type == "cuda":
        local, there = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
        if local >= there:
            raise ConfigError(f"process {local + 1} of this machine has no GPU, there are {there}: start {there} "
                              "processes, or set train.device to 'cpu'")
        torch.cuda.set_device(local)
    global _control
    if not dist.is_initialized():
        with yielding():
            _init("nccl" if device.type == "cuda" else "gloo", size)
            _control = dist.new_group(backend="gloo", timeout=LONGEST)
        if device.type == "cpu":
            long_turns.ask_for(long_turns.TURN)
            if _one_machine(size):
                _share_memory(current())
    return current()


def _init(backend: str, size: int) -> None:
    """As torchrun's variables say. On one machine each restart has keys of its own in torchrun's store, where the
    addresses of processes that died would be found otherwise."""
    # its functions take the group as a default argument: imported later, by the first optimiser, they would hold it
    import torch.distributed.nn.functional  # noqa: F401

    names = os.environ
    if names.get("TORCHELASTIC_USE_AGENT_STORE") != "True" or names.get("LOCAL_WORLD_SIZE") != str(size):
        dist.init_process_group(backend)
        return
    shared = dist.TCPStore(names["MASTER_ADDR"], int(names["MASTER_PORT"]), is_master=False)
    store = dist.PrefixStore(f"sluice/{names.get('TORCHELASTIC_RESTART_COUNT', '0')}", shared)
    dist.init_process_group(backend, store=store, rank=int(names["RANK"]), world_size=size)


def _one_machine(size: int) -> bool:
    """Whether all processes are here, on a Linux."""
    return os.environ.get("LOCAL_WORLD_SIZE") == str(size) and hasattr(os, "memfd_create")


def _share_memory(world: World) -> None:
    """Where the processes may open each other's memory."""
    connected = shared_memory.connected(world, lambda mine: gathered([mine], world))
    if connected is not None:
        exchange.use(connected)


def current() -> World:
    """The group that was joined; alone before."""
    return World(dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else ALONE


def restarted() -> bool:
    """Whether torchrun, or `sluice train --workers`, started all processes anew because one had died."""
    return any(int(os.environ.get(name, "0")) > 0 for name in ("TORCHELASTIC_RESTART_COUNT", "SLUICE_RESTART_COUNT"))


def same_start(tensors: Iterable[Tensor]) -> None:
    """Everyone takes the weights of rank 0."""
    for tensor in tensors:
        dist.broadcast(tensor.detach(), src=0)


def average_buffers(buffers: Iterable[Tensor], size: int) -> None:
    """Running means and variances of the ranks, which each saw rows of their own; all else in them is equal anyway."""
    for buffer in buffers:
        if buffer.is_floating_point() and buffer.numel():
            dist.all_reduce(buffer)
            buffer /= size


def gathered(mine: list[Result], world: World) -> list[Result]:
    """The lists of all processes, one after the other."""
    if world.size == 1:
        return mine
    parts: list[list[Result]] = [[] for _ in range(world.size)]
    dist.all_gather_object(parts, mine, group=_control)
    return [each for part in parts for each in part]


def total(values: list[float], device: torch.device, world: World) -> list[float]:
    """Sums over the processes."""
    if world.size == 1:
        return values
    sums = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(sums)
    return sums.tolist()


def by_first(action: Callable[[], Result]) -> Result:
    """What `action` returns, which rank 0 alone carries out: the others wait and get it, as JSON.

    Whatever writes files goes through here, for as long as LONGEST. Without other processes it is a plain call.
    """
    if not dist.is_initialized():
        return action()
    first = dist.get_rank() == 0
    result = action() if first else None
    text = torch.tensor(list(json.dumps(result).encode()), dtype=torch.uint8)
    size = torch.tensor([len(text)])
    dist.broadcast(size, src=0, group=_control)
    if not first:
        text = torch.empty(int(size), dtype=torch.uint8)
    dist.broadcast(text, src=0, group=_control)
    return result if first else json.loads(bytes(text.tolist()))  # type: ignore[return-value]


def summary_by_first(action: Callable[[], Made], kind: type[Summary]) -> Made:
    """As `by_first`, of a summary or None."""
    if not dist.is_initialized():
        return action()
    plain = by_first(lambda: None if (made := action()) is None else made.plain())
    return None if plain is None else kind.model_validate(plain)  # type: ignore[return-value]


def wait_for_all() -> None:
    """Until every process has come here."""
    if dist.is_initialized():
        dist.barrier(_control)


def leave() -> None:
    """Waits for the others, so that nobody hangs up on a peer that is still talking. No group is held any longer: one
    whose threads run while the interpreter ends aborts the process."""
    global _control
    if dist.is_initialized():
        wait_for_all()
        exchange.use(exchange.Collectives())
        long_turns.ask_for(0)
        _control = None
        dist.destroy_process_group()
