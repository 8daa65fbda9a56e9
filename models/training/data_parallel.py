"""Several processes, one model: started by torchrun, each with its own row groups, gradients averaged per batch."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

Answer = TypeVar("Answer")


class World(NamedTuple):
    rank: int
    size: int


def join(device: torch.device) -> World:
    """Rank and size from torchrun's variables, (0, 1) without them. Joins the group once (NCCL on GPUs, else gloo)."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return World(0, 1)
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    if not dist.is_initialized():
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return World(dist.get_rank(), dist.get_world_size())


def same_start(tensors: Iterable[Tensor]) -> None:
    """Everyone takes the weights of rank 0."""
    for tensor in tensors:
        dist.broadcast(tensor.detach(), src=0)


def average_gradients(parameters: Iterable[torch.nn.Parameter], size: int) -> None:
    """Sparse gradients travel densely: the ranks' rows differ. A row no rank has seen stays out of the result."""
    for parameter in parameters:
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        sparse = gradient.is_sparse
        total = gradient.to_dense() if sparse else gradient
        dist.all_reduce(total)
        total /= size
        parameter.grad = total.to_sparse(1) if sparse else total


def total(values: list[float], device: torch.device, world: World) -> list[float]:
    """Sums over the processes."""
    if world.size == 1:
        return values
    sums = torch.tensor(values, dtype=torch.float64, device=device)
    dist.all_reduce(sums)
    return sums.tolist()


def by_first(action: Callable[[], Answer]) -> Answer:
    """The answer of `action`, which rank 0 alone carries out: the others wait and get it, as JSON.

    Whatever writes files goes through here. Without other processes it is a plain call.
    """
    if not dist.is_initialized():
        return action()
    first = dist.get_rank() == 0
    device = torch.device("cuda" if dist.get_backend() == "nccl" else "cpu")
    answer = action() if first else None
    text = torch.tensor(list(json.dumps(answer).encode()), dtype=torch.uint8, device=device)
    size = torch.tensor([len(text)], device=device)
    dist.broadcast(size, src=0)
    if not first:
        text = torch.empty(int(size), dtype=torch.uint8, device=device)
    dist.broadcast(text, src=0)
    return answer if first else json.loads(bytes(text.tolist()))  # type: ignore[return-value]


def leave() -> None:
    """Waits for the others, so that nobody hangs up on a peer that is still talking."""
    if dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()
