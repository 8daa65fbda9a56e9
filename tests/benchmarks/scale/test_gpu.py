from __future__ import annotations

import torch

from benchmarks.models.pair_rates_scale import synthetic
from benchmarks.scale import gpu

TINY = gpu.Sizes(
    table=500, look_ups=200, width=8, batch=64, updates=2, side=32, bytes=4096, vectors=300, candidates=400)


def test_every_part_runs_with_the_same_code_on_a_cpu() -> None:
    found = gpu.measure(torch.device("cpu"), TINY, synthetic(3000, 8000), compiled=False)
    assert not [name for name, part in found.items() if "failed" in part]
    assert {"look_ups", "dnn", "dcn_v2", "fives", "pcf_gnn", "search", "pre_rank"} <= found.keys()
    assert float(found["dnn"]["share_of_multiply"] or 0) > 0


def test_operations_of_the_products_by_hand() -> None:
    assert gpu.products_of(1) == 6 * (160 * 400 + 400 * 400 * 2 + 400)
