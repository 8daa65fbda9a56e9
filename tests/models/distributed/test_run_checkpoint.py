from __future__ import annotations

import contextlib
import itertools
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from contracts.bundle.bundle import load_weights
from contracts.config.training import Train
from contracts.errors import ConfigError, DataError, SluiceError
from contracts.features.feature_spec import FeatureSpec
from models.distributed import run_checkpoint
from models.distributed.run_checkpoint import FORMAT, KEPT, PROGRESS, STOP, Progress, RunCheckpoint, State, deal
from models.distributed.world import ALONE, World
from models.examples.batches import ExampleSet
from models.networks import registry
from models.training import fitting, loop
from tests import small_disk

Leave = Callable[..., None]
Finish = Callable[..., tuple[dict[str, Any], list[int]]]


@pytest.fixture
def finish(item_world: Any, spec: FeatureSpec, exact_settings: Train) -> Finish:
    """Runs to the end from what the folder keeps: weights, and the batches that were done."""
    def run(folder: Path, name: str = "1", resume: bool = True) -> tuple[dict[str, Any], list[int]]:
        done: list[int] = []
        torch.manual_seed(1)
        network = registry.build("dnn", spec, exact_settings)
        train, validation = (ExampleSet(part.folder, spec) for part in (item_world.train, item_world.validation))
        fitting.fit(network, train, validation, exact_settings, 1, positions=4,
                          on_batch=lambda batch, _: done.append(batch),
                          kept=RunCheckpoint(folder, 3600.0, {"run": name}, resume))
        return {name: tensor.numpy() for name, tensor in network.state_dict().items()}, done

    return run


def equal(found: dict[str, Any], wanted: dict[str, Any], tolerance: float = 0.0) -> None:
    for name, tensor in wanted.items():
        np.testing.assert_allclose(found[name], tensor, rtol=0, atol=tolerance, err_msg=name)


def test_a_run_taken_up_ends_as_if_undisturbed(leave: Leave, finish: Finish, alone: Any, tmp_path: Path) -> None:
    with pytest.raises(InterruptedError):
        leave(tmp_path / "kept")
    assert len([*(tmp_path / "kept").glob("[0-9]*")]) == KEPT
    weights, done = finish(tmp_path / "kept")
    assert done[0] == 5
    assert 1 not in done
    equal(weights, alone[1])


def test_a_sigterm_leaves_a_checkpoint(leave: Leave, finish: Finish, alone: Any, tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SluiceError, match=r"SIGTERM.*batch 6 of epoch 2.*--resume"):
        leave(tmp_path / "kept", lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert signal.getsignal(signal.SIGTERM) == before
    weights, done = finish(tmp_path / "kept")
    assert done[0] == 7
    equal(weights, alone[1])


def test_a_sigterm_during_validation_is_heard(
    item_world: Any, spec: FeatureSpec, exact_settings: Train, finish: Finish, alone: Any, tmp_path: Path
) -> None:
    def end(batch: int, batches: int) -> None:
        if batch == batches:  # nothing but validation is left of the epoch
            os.kill(os.getpid(), signal.SIGTERM)

    torch.manual_seed(1)
    network = registry.build("dnn", spec, exact_settings)
    train, validation = (ExampleSet(part.folder, spec) for part in (item_world.train, item_world.validation))
    with pytest.raises(SluiceError, match=r"batch 24 of epoch 1;"):
        fitting.fit(network, train, validation, exact_settings, 1, positions=4, on_batch=end,
                    kept=RunCheckpoint(tmp_path / "kept", 3600.0, {"run": "1"}))
    weights, done = finish(tmp_path / "kept")
    assert done[0] == 1
    equal(weights, alone[1])


def test_the_rate_of_a_run_taken_up_is_of_what_it_has_trained_itself(
    leave: Leave, item_world: Any, spec: FeatureSpec, exact_settings: Train, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By a clock on which each epoch takes a second: the epochs of before, and what they had of this one, count not."""
    with contextlib.suppress(SluiceError):
        leave(tmp_path / "kept", lambda: os.kill(os.getpid(), signal.SIGTERM))  # after batch 6 of epoch 2
    ticks, done = itertools.count(), list[int]()
    monkeypatch.setattr(loop.time, "perf_counter", lambda: float(next(ticks)))
    train, validation = (ExampleSet(part.folder, spec) for part in (item_world.train, item_world.validation))
    found = fitting.fit(registry.build("dnn", spec, exact_settings), train, validation, exact_settings, 1, positions=4,
                        on_batch=lambda batch, batches: done.append(batches),
                        kept=RunCheckpoint(tmp_path / "kept", 3600.0, {"run": "1"}, resume=True))
    assert len(found.history) == 1 + -(-len(done) // done[0])
    assert found.rows_per_second == pytest.approx(train.rows * (len(done) / done[0]) / (len(found.history) - 1),
                                                  rel=0.02)  # the last batch is a smaller one


def test_a_new_start_takes_nothing_up(leave: Leave, finish: Finish, alone: Any, tmp_path: Path) -> None:
    with contextlib.suppress(InterruptedError):
        leave(tmp_path / "kept")
    weights, done = finish(tmp_path / "kept", resume=False)
    assert done.count(1) == 2
    equal(weights, alone[1])


def test_another_run_is_refused_by_what_differs(leave: Leave, finish: Finish, tmp_path: Path) -> None:
    with contextlib.suppress(InterruptedError):
        leave(tmp_path / "kept")
    with pytest.raises(ConfigError, match=r"run \(1 there, 2 now\).*without --resume"):
        finish(tmp_path / "kept", "2")
    assert len([*(tmp_path / "kept").glob("[0-9]*")]) == KEPT


@pytest.mark.parametrize("text", [
    "{", '{"epoch": 2}', f'{{"format": {FORMAT}, "identity": {{"run": "1"}}, "epoch": "x"}}'])
def test_what_is_no_checkpoint_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "000001").mkdir()
    (tmp_path / "000001" / PROGRESS).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=r"000001 is no checkpoint.*without --resume"):
        RunCheckpoint(tmp_path, 0.0, {"run": "1"}, resume=True).latest(Progress)


def test_a_checkpoint_of_another_format_is_refused(tmp_path: Path) -> None:
    kept = RunCheckpoint(tmp_path, 0.0, {}, resume=True)
    kept.write(Progress(), State({}, {"a": torch.zeros(2)}), ALONE)
    path = tmp_path / "000001" / PROGRESS
    path.write_text(path.read_text().replace(f'"format": {FORMAT}', '"format": 99'), encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"format \(99 there, {FORMAT} now\)"):
        kept.latest(Progress)


FULL = """
import sys
from pathlib import Path
import torch
from contracts.errors import ConfigError, DataError, SluiceError
from models.distributed.run_checkpoint import Progress, RunCheckpoint, State
from models.distributed.world import ALONE
kept = RunCheckpoint(Path(sys.argv[1]) / "kept", 0.0, {}, resume=True)
small, large = torch.arange(1000.0), torch.zeros(1_000_000)
kept.write(Progress(batch=1), State({"table": small}, {"weight": small}), ALONE)
for rows, dense in [({"table": large}, {}), ({}, {"weight": large})]:
    try:
        kept.write(Progress(batch=2), State(rows, dense), ALONE)
    except SluiceError as error:
        print(error)
    assert kept.latest(Progress).batch == 1
    assert torch.equal(kept.read_dense()["weight"], small)
print(*[path.name for path in kept.folder.iterdir()])
"""


@pytest.mark.slow
def test_a_full_disk_leaves_the_last_checkpoint_whole(tmp_path: Path) -> None:
    *said, names = small_disk.run(FULL, tmp_path / "disk", "1m").splitlines()
    assert names == "000001"
    assert len(said) == 2
    assert all("MB are free" in line and "kept/000001 before it is whole" in line for line in said)


def test_a_sigterm_after_the_last_look_is_sent_again(tmp_path: Path) -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    try:
        with RunCheckpoint(tmp_path, 3600.0, {}) as kept:
            os.kill(os.getpid(), signal.SIGTERM)
            assert kept.wish(ALONE) >= STOP
            assert not seen
        assert seen == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.slow
def test_two_processes_take_up_what_one_left(of_two: Path, alone: Any) -> None:
    for rank in (0, 1):
        equal(load_weights(of_two / f"resumed{rank}.safetensors"), alone[1], 5e-3)


@pytest.mark.parametrize("before", [1, 2, 3, 4])
@pytest.mark.parametrize("after", [1, 2, 3, 4, 6])
def test_rows_are_dealt_anew_to_another_number_of_processes(before: int, after: int) -> None:
    table = torch.arange(23 * 2).view(23, 2)
    for rank in range(after):
        target = torch.full_like(World(rank, after).own(table), -1).contiguous()
        for part in range(before):
            deal(World(part, before).own(table).numpy(), part, before, target, World(rank, after))
        assert torch.equal(target, World(rank, after).own(table))


def test_a_process_that_works_by_itself_waits_for_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others wait for its result: an exchange among it would be answered by none, or by the wrong one."""
    def exchange(*_: object) -> None:
        raise AssertionError("an exchange")

    monkeypatch.setattr(run_checkpoint, "by_first", exchange)
    monkeypatch.setattr(run_checkpoint, "wait_for_all", exchange)
    kept = RunCheckpoint(tmp_path / "kept", 0.0, {"run": "1"}, resume=True, alone=True)
    kept.write(Progress(batch=3), State({}, {"a": torch.ones(2)}), ALONE)
    reached = kept.latest(Progress)
    assert reached is not None
    assert reached.batch == 3
    kept.clear()
    assert kept.latest(Progress) is None
    with pytest.raises(AssertionError, match="an exchange"):
        RunCheckpoint(tmp_path / "kept", 0.0, {"run": "1"}).write(Progress(), State({}, {}), ALONE)
