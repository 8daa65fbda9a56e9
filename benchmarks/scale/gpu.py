"""What a GPU is kept busy with: training, look-ups, matrix products, searches, pre-ranking; the one command for CUDA.

    sluice bench gpu [--device auto] [--json]          or, with torch, torch-geometric, pyarrow, numpy, pydantic alone,
    python -m benchmarks.scale.gpu [--device auto] [--json]

    copy        bytes a second of a device's own copies, read and written: the bandwidth that look-ups are compared with
    multiply    float32 and bf16 operations a second of a square product: the rate that networks are compared with
    look_ups    a million rows of width 128, forwards, and with the gradient and its RowAdam update; share of `copy`
    training    samples a second of DNN, DCNv2, FIVES (updates on batches that wait on the host), of PCF-GNN's
                pre-training (on the CPU: it has no other), and of the DNN's products alone as a share of `multiply`
    search      FAISS: 1,000 queries of 64 numbers; on a GPU where faiss sees one, else on the CPU, and which it was
    pre_rank    the towers' pre-ranker on 100 thousand candidates, as it is and compiled: median and 90th percentile, ms

On a CPU the same code runs with the sizes of SMALL, which say nothing of a GPU. Nothing here waits for the device but
the clock. The goals: a million look-ups of width 128 in 0.35 ms forwards on an H100, and 1.0 more with gradient and
update (what fused kernels take there); 100 thousand candidates under 20 ms at the 90th percentile.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.scale import world as made
from contracts.config.training import PairRates, Train
from models.distributed.data_parallel import resolve_device
from models.examples.batches import Batch
from models.layers.losses import ClickLoss
from models.layers.position_bias import PositionBias
from models.networks import registry
from models.networks.tower_pre_ranker import PreRanker
from models.optimisation.row_adam import RowAdam, row_gradient
from models.pair_rates import network as pair_network
from models.pair_rates import pretraining
from models.pair_rates.graph import PairGraph
from models.training.loop import Loop

Figures = dict[str, float | str | None]
NETWORKS = ("dnn", "dcn_v2", "fives")


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


LARGE = Sizes(10_000_000, 1_000_000, 128, 16_384, 50, 8192, 2**31, 1_000_000, 100_000)
SMALL = Sizes(20_000, 20_000, 128, 1024, 4, 512, 2**24, 20_000, 2_000)


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
    gradient, adds it up, and reads and writes weight and mean of each distinct row."""
    weight = nn.Parameter(torch.randn(sizes.table, sizes.width, device=device).mul_(0.1))
    rows = torch.randint(1, sizes.table, (sizes.look_ups,), device=device)
    adam = RowAdam(weight, 1e-3, 0.0, by_row=True)

    def forward() -> Tensor:
        with torch.no_grad():
            return nn.functional.embedding(rows, weight)

    upstream = torch.randn(sizes.look_ups, sizes.width, device=device)

    def update() -> None:
        gradient = torch.sparse_coo_tensor(rows[None], upstream, weight.shape, check_invariants=False)
        adam.step(*row_gradient(gradient, adam.place))

    ahead, back = (statistics.median(seconds(device, action)) for action in (forward, update))
    moved = sizes.look_ups * sizes.width * 4
    return {"forward_ms": 1e3 * ahead, "update_ms": 1e3 * back, "forward_share_of_copy": 2 * moved / ahead / copied,
            "update_share_of_copy": 6 * moved / back / copied}


def training_rate(name: str, device: torch.device, sizes: Sizes) -> float:
    """Samples a second of updates on batches in pinned memory."""
    settings = Train(device=str(device), embedding_dim=16, hidden=(400, 400, 400), batch_size=sizes.batch)
    layout = made.spec(sizes.table)
    torch.manual_seed(0)
    network = registry.build(name, layout, settings)
    loop = Loop(ClickLoss(network, PositionBias(0)), [network], settings, 0, 1)
    loop.loss.train()
    waiting: list[Batch] = [batch.pinned(device) for batch in made.batches(layout, sizes.batch, sizes.updates)]
    spent = seconds(device, lambda: [loop.step(batch.to(device)) for batch in waiting], repetitions=3, warm=1)
    return sizes.updates * sizes.batch / statistics.median(spent)


def products_of(batch: int) -> float:
    """Operations of the DNN's matrix products in an update: forwards, and twice as many backwards."""
    widths = (made.FIELDS * 16, 400, 400, 400, 1)
    return 6.0 * batch * sum(a * b for a, b in itertools.pairwise(widths))


def pcf_gnn_rate(graph: PairGraph, batches: int) -> float:
    """Pairs a second of pre-training."""
    settings = PairRates(batch_size=1024)
    torch.manual_seed(0)
    run = pretraining.PretrainRun(pair_network.build(settings, graph), graph, settings, 0)
    begin = time.perf_counter()
    run.epoch(1, None, most_batches=batches)
    return min(len(run.train), batches * settings.batch_size) / (time.perf_counter() - begin)


def search(vectors: int) -> Figures:
    """Exact inner products by FAISS; {} without faiss."""
    try:
        import faiss
    except ImportError:
        return {"where": "faiss is not installed"}
    random = np.random.default_rng(0)
    stored, asked = (random.standard_normal((n, 64), dtype=np.float32) for n in (vectors, 1000))
    index, where = cast(Any, faiss.IndexFlatIP(64)), "cpu"
    if getattr(faiss, "get_num_gpus", lambda: 0)():
        index, where = faiss.index_cpu_to_gpu(faiss.StandardGpuResources(), 0, index), "gpu"
    index.add(stored)
    spent = seconds(torch.device("cpu"), lambda: index.search(asked, 100), repetitions=3, warm=1)
    return {"where": where, "queries_per_second": 1000 / statistics.median(spent)}


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


def measure(device: torch.device, sizes: Sizes, graph: PairGraph, compiled: bool = True) -> dict[str, Figures]:
    """Part -> figures. A part that fails says why, and the others are measured."""
    copied = copy_rate(device, sizes.bytes)
    float32, half = (product_rate(device, sizes.side, kind) for kind in (torch.float32, torch.bfloat16))
    found: dict[str, Figures] = {
        "device": {"name": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
                   "torch": torch.__version__, "sizes": json.dumps(sizes._asdict())},
        "copy": {"bytes_per_second": copied},
        "multiply": {"float32": float32, "bf16": half},
    }
    parts: dict[str, Callable[[], Figures]] = {
        "look_ups": lambda: look_ups(device, sizes, copied),
        **{name: lambda name=name: {"samples_per_second": training_rate(name, device, sizes)}  # type: ignore[misc]
           for name in NETWORKS},
        "pcf_gnn": lambda: {"pairs_per_second": pcf_gnn_rate(graph, sizes.updates), "device": "cpu"},
        "search": lambda: search(sizes.vectors),
        "pre_rank": lambda: pre_rank(device, sizes.candidates, compiled=False),
    }
    if compiled:
        parts["pre_rank_compiled"] = lambda: pre_rank(device, sizes.candidates, compiled=True)
    for name, part in parts.items():
        try:
            found[name] = part()
        except Exception as error:
            found[name] = {"failed": f"{type(error).__name__}: {error}"[:500]}
    rate = found["dnn"].get("samples_per_second")
    if isinstance(rate, float):
        found["dnn"]["share_of_multiply"] = rate * products_of(sizes.batch) / sizes.batch / float32
    return found


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--size", choices=["large", "small"], help="without it large on a GPU, small on a CPU")
    parser.add_argument("--no-compile", action="store_true", help="leaves the compiled pre-ranker out")
    parser.add_argument("--json", action="store_true", help="the last line is JSON alone")
    asked = parser.parse_args(argv)
    device = resolve_device(asked.device)
    large = asked.size == "large" or (asked.size is None and device.type == "cuda")
    from benchmarks.models.pair_rates_scale import synthetic

    graph = synthetic(200_000 if large else 6_000, 2_000_000 if large else 40_000)
    found = measure(device, LARGE if large else SMALL, graph, not asked.no_compile)
    if not asked.json:
        for name, figures in found.items():
            print(f"{name:18s}", ", ".join(f"{key} {value:,.4g}" if isinstance(value, float) else f"{key} {value}"
                                            for key, value in figures.items()))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
