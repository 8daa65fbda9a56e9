"""The parts of `sluice bench gpu` that are no training: a device's own rates, look-ups, searches, pre-ranking."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from contracts.config.stages import Retrieve
from models.networks.tower_pre_ranker import PreRanker
from models.optimisation.row_adam import RowAdam, row_gradient

Figures = dict[str, float | str | None]


class Sizes(NamedTuple):
    """`table` rows of training and look-ups, `side` of the square product, `bytes` that are copied."""

    table: int
    look_ups: int
    width: int
    batch: int
    updates: int
    side: int
    bytes: int
    vectors: int
    candidates: int


def seconds(device: torch.device, action: Callable[[], object], repetitions: int = 10, warm: int = 3) -> list[float]:
    """Of each repetition, the device's work in it included."""
    found = []
    for number in range(warm + repetitions):
        _wait(device)
        begin = time.perf_counter()
        action()
        _wait(device)
        if number >= warm:
            found.append(time.perf_counter() - begin)
    return found


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def copy_rate(device: torch.device, size: int) -> float:
    """Bytes a second, read and written."""
    source = torch.empty(size // 4, device=device)
    target = torch.empty_like(source)
    return 2 * size / statistics.median(seconds(device, lambda: target.copy_(source)))


def product_rate(device: torch.device, side: int, kind: torch.dtype) -> float:
    """Operations a second of [side, side] x [side, side]."""
    left, right = (torch.randn(side, side, device=device, dtype=kind) for _ in range(2))
    return 2 * side**3 / statistics.median(seconds(device, lambda: left @ right))


def look_ups(device: torch.device, sizes: Sizes, copied: float) -> Figures:
    """Rows drawn evenly, the worst case for caches. Bytes: forwards a row is read and written; the update reads a
    gradient, adds it up, and reads and writes weight and mean of each distinct row.

    torch's floor: index_select forwards, and a plain step of gradient descent on the rows as they come (index_add_),
    which keeps no moments and adds nothing up. EmbeddingBag has bags of one row.
    """
    weight = nn.Parameter(torch.randn(sizes.table, sizes.width, device=device).mul_(0.1))
    rows = torch.randint(1, sizes.table, (sizes.look_ups,), device=device)
    upstream = torch.randn(sizes.look_ups, sizes.width, device=device)
    adam, bag = RowAdam(weight, 1e-3, 0.0, by_row=True), nn.EmbeddingBag.from_pretrained(weight.detach(), mode="sum")

    def update() -> None:
        gradient = torch.sparse_coo_tensor(rows[None], upstream, weight.shape, check_invariants=False)
        adam.step(*row_gradient(gradient, adam.place))

    actions: dict[str, Callable[[], object]] = {
        "forward": lambda: nn.functional.embedding(rows, weight), "update": update,
        "torch_bag_forward": lambda: bag(rows[:, None]),
        "torch_floor_forward": lambda: weight.index_select(0, rows),
        "torch_floor_update": lambda: weight.index_add_(0, rows, upstream, alpha=-1e-3)}
    with torch.no_grad():
        spent = {name: statistics.median(seconds(device, action)) for name, action in actions.items()}
    moved = sizes.look_ups * sizes.width * 4
    return {**{f"{name}_ms": 1e3 * each for name, each in spent.items()},
            "forward_share_of_copy": 2 * moved / spent["forward"] / copied,
            "update_share_of_copy": 6 * moved / spent["update"] / copied}


def search(vectors: int) -> Figures:
    """An index of lists as bundles have it, made and searched where faiss works; recall of the 100 best."""
    try:
        import faiss

        from serving.bundle import item_index
        from serving.vector_search import faiss_device
    except ImportError as error:
        return {"where": f"not measured: {error}"}
    stored, asked = _clustered(vectors, 0), _clustered(1000, 1)
    settings = Retrieve(flat_below=1000)
    begin = time.perf_counter()
    index = item_index.build(stored, settings)
    built = time.perf_counter() - begin
    exact = faiss_device.nearest(asked, stored, 100)
    found: Figures = {"where": "gpu" if index.gpu_index else "cpu", "faiss": faiss.__version__, "build_seconds": built}
    for name, each in [("", index), ("_cpu", replace(index, gpu_index=None))] if index.gpu_index else [("", index)]:
        rows = item_index.search_many(each, asked, 100)[1]
        spent = seconds(torch.device("cpu"), lambda each=each: item_index.search_many(each, asked, 100), 3, 1)  # type: ignore[misc]
        found[f"recall{name}"] = float(np.mean([len(np.intersect1d(*pair)) / 100
                                                for pair in zip(rows, exact, strict=True)]))
        found[f"queries_per_second{name}"] = 1000 / statistics.median(spent)
    return found


def _clustered(count: int, seed: int) -> np.ndarray:
    """Unit vectors of 64 numbers around 200 centres, as towers leave them; the centres do not depend on the seed."""
    draw = np.random.default_rng(seed)
    centres = np.random.default_rng(100).standard_normal((200, 64), dtype=np.float32)
    vectors = centres[draw.integers(0, 200, count)] + 0.5 * draw.standard_normal((count, 64), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def pre_rank(device: torch.device, candidates: int, compiled: bool) -> Figures:
    """One user against so many item vectors that lie on the device: scores, best 200."""
    torch.manual_seed(0)
    network: Callable[[Tensor, Tensor], Tensor] = PreRanker(64, (64, 32)).to(device).eval()
    if compiled:
        network = torch.compile(network)
    user, items = torch.randn(1, 64, device=device), torch.randn(candidates, 64, device=device)

    @torch.inference_mode()
    def best() -> Tensor:
        return network(user, items).topk(min(200, candidates)).indices.cpu()

    spent = sorted(seconds(device, best, repetitions=30))
    return {"median_ms": 1e3 * statistics.median(spent), "p90_ms": 1e3 * spent[int(0.9 * len(spent))]}
