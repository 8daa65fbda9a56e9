"""What a GPU is kept busy with: training, look-ups, matrix products, searches, pre-ranking; the one command for CUDA.

    sluice bench gpu [--device auto] [--json]          or, with torch, torch-geometric, pyarrow, numpy, pydantic alone,
    python -m benchmarks.scale.gpu [--device auto] [--results benchmarks/RESULTS.md]

    copy        bytes a second of a device's own copies, read and written: the bandwidth that look-ups are compared with
    multiply    float32 and bf16 operations a second of a square product: the rate that networks are compared with
    look_ups    a million rows of width 128, forwards, and with the gradient and its RowAdam update; share of `copy`;
                beside torch's own EmbeddingBag and index_select, and its index_add_ as the update
    training    samples a second of DNN, DCNv2, FIVES (updates on batches that wait on the host), pairs a second of
                PCF-GNN's pre-training, and the DNN's products alone as a share of `multiply`
    search      FAISS, as a bundle's index is made and searched: 1,000 queries of 64 numbers on the GPU where faiss sees
                one, else on the CPU, which it was, and the recall of both
    pre_rank    the towers' pre-ranker on 100 thousand candidates, as it is and compiled: median and 90th percentile, ms

On a CPU the same code runs with the sizes of SMALL, which say nothing of a GPU. Nothing here waits for the device but
the clock, the sampling of PCF-GNN and the answers of searches and pre-rankers. `--results` appends a section to a file.
The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from benchmarks.models.pair_rates_scale import synthetic
from benchmarks.scale import world as made
from benchmarks.scale.device_parts import Figures, Sizes, copy_rate, look_ups, pre_rank, product_rate, search, seconds
from benchmarks.scale.device_report import commit, section
from contracts.config.training import PairRates, Train
from models.distributed.data_parallel import resolve_device
from models.examples.batches import Batch
from models.layers.losses import ClickLoss
from models.layers.position_bias import PositionBias
from models.networks import registry
from models.pair_rates import network as pair_network
from models.pair_rates import pretraining
from models.pair_rates.graph import PairGraph
from models.training.loop import Loop

NETWORKS = ("dnn", "dcn_v2", "fives")
LARGE = Sizes(10_000_000, 1_000_000, 128, 16_384, 50, 8192, 2**31, 1_000_000, 100_000)
SMALL = Sizes(20_000, 20_000, 128, 1024, 4, 512, 2**24, 20_000, 2_000)


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


def pcf_gnn_rate(graph: PairGraph, batches: int, device: torch.device) -> float:
    """Pairs a second of pre-training, after as many batches that are not counted."""
    settings = PairRates(batch_size=1024)
    torch.manual_seed(0)
    run = pretraining.PretrainRun(pair_network.build(settings, graph), graph, settings, 0, device)
    spent = seconds(device, lambda: run.epoch(pretraining.PretrainProgress(), most_batches=batches), 1, warm=1)
    return min(len(run.train), batches * settings.batch_size) / spent[0]


def measure(device: torch.device, sizes: Sizes, graph: PairGraph, compiled: bool = True) -> dict[str, Figures]:
    """Part -> figures. A part that fails says why, and the others are measured."""
    copied = copy_rate(device, sizes.bytes)
    float32, half = (product_rate(device, sizes.side, kind) for kind in (torch.float32, torch.bfloat16))
    found: dict[str, Figures] = {
        "device": {"name": torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine(),
                   "kind": device.type, "threads": torch.get_num_threads(), "torch": torch.__version__,
                   "commit": commit(), "date": time.strftime("%Y-%m-%d", time.gmtime()),
                   "sizes": json.dumps(sizes._asdict())},
        "copy": {"bytes_per_second": copied},
        "multiply": {"float32": float32, "bf16": half},
    }
    parts: dict[str, Callable[[], Figures]] = {
        "look_ups": lambda: look_ups(device, sizes, copied),
        **{name: lambda name=name: {"samples_per_second": training_rate(name, device, sizes)}  # type: ignore[misc]
           for name in NETWORKS},
        "pcf_gnn": lambda: {"pairs_per_second": pcf_gnn_rate(graph, sizes.updates, device)},
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
    parser.add_argument("--results", type=Path, help="a file to append the section to")
    parser.add_argument("--json", action="store_true", help="JSON alone")
    asked = parser.parse_args(argv)
    device = resolve_device(asked.device)
    large = asked.size == "large" or (asked.size is None and device.type == "cuda")
    graph = synthetic(200_000 if large else 6_000, 2_000_000 if large else 40_000)
    found = measure(device, LARGE if large else SMALL, graph, not asked.no_compile)
    text = section(found)
    if asked.results:
        with asked.results.open("a", encoding="utf-8") as file:
            file.write(text)
    if not asked.json:
        print(text)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
