from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist

from models.distributed import exchange
from models.distributed.exchange import Collectives

ROOT = Path(__file__).parents[3]
PROCESS = """
import json, torch
from models.distributed import data_parallel, exchange

world = data_parallel.join(torch.device("cpu"))
way = exchange.current()
values = torch.arange(6.0).view(3, 2) + 10 * world.rank
asked = way.dealt(values, [1, 2])
known = way.dealt(values, [1, 2], [1 + world.rank] * 2)
sums, pending = way.add([values.flatten(), torch.ones(1)])
pending.wait()
print(json.dumps([type(way).__name__, asked[0].tolist(), asked[1], known[0].tolist(), known[1], sums.tolist()]))
data_parallel.leave()
assert type(exchange.current()) is exchange.Collectives
"""


@pytest.mark.usefixtures("group_of_one")
def test_in_a_group_of_one_all_comes_back() -> None:
    values = torch.arange(6.0).view(3, 2)
    found, counts = Collectives().dealt(values, [3])
    assert torch.equal(found, values)
    assert counts == [3]
    sums, pending = Collectives().add([values.flatten(), torch.ones(2)])
    pending.wait()
    assert sums.tolist() == [0, 1, 2, 3, 4, 5, 1, 1]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU")
def test_nccl_gives_back_what_gloo_does(tmp_path: Path) -> None:
    dist.init_process_group("nccl", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        values = torch.arange(6.0, device="cuda").view(3, 2)
        for received in (None, [3]):
            found, counts = Collectives().dealt(values, [3], received)
            assert torch.equal(found, values)
            assert counts == [3]
        sums, pending = Collectives().add([values.flatten(), torch.ones(2, device="cuda")])
        pending.wait()
        assert sums.tolist() == [0, 1, 2, 3, 4, 5, 1, 1]
    finally:
        dist.destroy_process_group()


def test_what_was_used_before_is_closed() -> None:
    closed = []

    class Closing(Collectives):
        def close(self) -> None:
            closed.append(self)

    first = Closing()
    exchange.use(first)
    assert exchange.current() is first
    exchange.use(Collectives())
    assert closed == [first]


@pytest.mark.slow
@pytest.mark.parametrize(("machines", "way"), [(1, "SharedMemory"), (2, "Collectives")])
def test_both_ways_do_the_same(machines: int, way: str, tmp_path: Path) -> None:
    """Two processes, of one machine or as if on two."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    started = []
    for rank in (0, 1):
        environment = {
            **os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(store.port), "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank),
            "LOCAL_WORLD_SIZE": str(2 // machines), "TORCHELASTIC_USE_AGENT_STORE": "True"}
        started.append(subprocess.Popen([sys.executable, "-c", PROCESS], env=environment, cwd=tmp_path,
                                        stdout=subprocess.PIPE, text=True))
    said = [json.loads(process.communicate(timeout=120)[0]) for process in started]
    sums = [10.0 + 2 * number for number in range(6)] + [2.0]
    first = [[0.0, 1.0], [10.0, 11.0]]
    second = [[2.0, 3.0], [4.0, 5.0], [12.0, 13.0], [14.0, 15.0]]
    assert said == [[way, first, [1, 1], first, [1, 1], sums], [way, second, [2, 2], second, [2, 2], sums]]
