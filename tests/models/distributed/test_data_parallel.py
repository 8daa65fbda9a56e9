from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from contracts.errors import ConfigError
from models.distributed.data_parallel import join, resolve_device
from models.distributed.world import World


def test_auto_takes_what_there_is() -> None:
    assert resolve_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert resolve_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu", "meta", "cuda:99"])
def test_a_device_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="use 'auto'"):
        resolve_device(name)


def test_one_process_joins_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert join(torch.device("cpu")) == World(0, 1)


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_exchanges_do_not_preempt_and_who_has_left_keeps_none_of_their_threads(of_two: Path, rank: int) -> None:
    """One that ran while the interpreter ends would abort the process."""
    said = json.loads((of_two / f"threads{rank}of2.json").read_text(encoding="utf-8"))
    assert set(said["joined"]) == {os.SCHED_BATCH}
    assert said["left"] == []


PATIENT = """
import functools, sys, time
from datetime import timedelta
import torch
import torch.distributed as dist
from models.distributed import data_parallel

dist.init_process_group = functools.partial(dist.init_process_group, timeout=timedelta(seconds=1))
world = data_parallel.join(torch.device("cpu"))
first = world.rank == 0
print(data_parallel.by_first(lambda: time.sleep(2) or "long work"), flush=True)
try:
    if first:
        time.sleep(2)
    dist.all_reduce(torch.ones(1))
except RuntimeError:
    print("timed out", flush=True)
"""


@pytest.mark.slow
def test_long_work_of_the_first_process_times_nobody_out() -> None:
    """Where tensors that come after the group's time do: of them nobody is to keep the others waiting."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    common = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3]), "OMP_NUM_THREADS": "1", "WORLD_SIZE": "2",
              "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    started = [subprocess.Popen([sys.executable, "-c", PATIENT], env={**common, "RANK": str(rank)}, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE) for rank in range(2)]
    said, errors = zip(*(process.communicate(timeout=120) for process in started), strict=True)
    assert all(words.startswith("long work\n") for words in said), errors
    assert said[1] == "long work\ntimed out\n", errors
