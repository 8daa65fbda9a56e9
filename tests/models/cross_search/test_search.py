"""The alternation of network and structure: entries where pairs may be joined, one for one seed, finite."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from contracts.bundle.bundle import save_array
from contracts.config.training import Crosses, Train
from contracts.errors import ConfigError, SluiceError
from models.cross_search.search import Searched, SearchProgress, search
from models.distributed.run_checkpoint import RunCheckpoint
from models.examples.batches import ExampleSet
from tests.models.crossed_world import FIELDS, crossed_columns, crossed_spec, pair_logit, write_examples

SPEC = crossed_spec()
TRAIN = Train(embedding_dim=4, hidden=(8,))
ROWS = 1000


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ExampleSet, ExampleSet]:
    folder: Path = tmp_path_factory.mktemp("search")
    return (ExampleSet(write_examples(folder / "fit", crossed_columns(pair_logit(0, 3), ROWS, 1)), SPEC),
            ExampleSet(write_examples(folder / "holdout", crossed_columns(pair_logit(0, 3), ROWS // 2, 2)), SPEC))


def searched(parts: tuple[ExampleSet, ExampleSet], allowed: np.ndarray, seed: int = 0, **changed: float) -> Searched:
    plain = {"batch_size": 100, "epochs": 1, "dim": 4, "hidden": (8,), "layers": 2}
    settings = Crosses.model_validate(plain).model_copy(update=changed)  # a rate without end is no configuration's
    return search(SPEC, *parts, allowed, settings, TRAIN, seed)


def test_only_allowed_pairs_have_an_entry_between_0_and_1(parts: tuple[ExampleSet, ExampleSet]) -> None:
    allowed = np.zeros((FIELDS, FIELDS), dtype=bool)
    allowed[0, 3] = allowed[3, 0] = allowed[1, 2] = True
    found = searched(parts, allowed)
    assert len(found.adjacency) == 2
    for layer in found.adjacency:
        assert (layer[~allowed] == 0.0).all()
        assert ((layer[allowed] > 0.0) & (layer[allowed] < 1.0)).all()


def test_one_seed_gives_one_structure_and_another_seed_another(parts: tuple[ExampleSet, ExampleSet]) -> None:
    allowed = ~np.eye(FIELDS, dtype=bool)
    first, again, other = (searched(parts, allowed, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.adjacency, again.adjacency)
    assert not np.array_equal(first.adjacency, other.adjacency)


def test_every_epoch_is_counted_batch_by_batch(parts: tuple[ExampleSet, ExampleSet]) -> None:
    seen: list[tuple[int, int]] = []
    settings = Crosses(batch_size=100, epochs=2, dim=4, hidden=(8,))
    found = search(SPEC, *parts, ~np.eye(FIELDS, dtype=bool), settings, TRAIN, 0, lambda *at: seen.append(at))
    assert seen == [(number, ROWS // 100) for _ in range(2) for number in range(1, ROWS // 100 + 1)]
    assert [epoch.epoch for epoch in found.history] == [1, 2]
    assert all(np.isfinite([epoch.fit_loss, epoch.holdout_loss]).all() for epoch in found.history)


def test_a_structure_that_bursts_is_refused_with_the_cure(parts: tuple[ExampleSet, ExampleSet]) -> None:
    with pytest.raises(SluiceError, match=r"lower crosses\.edge_learning_rate"):
        searched(parts, ~np.eye(FIELDS, dtype=bool), edge_learning_rate=float("inf"))


def stopped_at(n: int, kind: signal.Signals) -> Callable[[int, int], None]:
    seen: list[int] = []

    def count(done: int, _: int) -> None:
        seen.append(done)
        if len(seen) == n:
            os.kill(os.getpid(), kind)

    return count


def in_fork(action: Callable[[], object]) -> int:
    child = os.fork()
    if child == 0:
        code = 1
        try:
            torch.set_num_threads(1)
            action()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "seconds"), [(signal.SIGKILL, 0.0), (signal.SIGTERM, 3600.0)])
def test_a_search_ended_in_the_middle_goes_on_to_the_same_bits(
    parts: tuple[ExampleSet, ExampleSet], tmp_path: Path, kind: signal.Signals, seconds: float
) -> None:
    settings = Crosses(batch_size=100, epochs=2, dim=4, hidden=(8,), dropout=0.2)
    arguments = (SPEC, *parts, ~np.eye(FIELDS, dtype=bool), settings, TRAIN, 0)

    def kept(name: str = "1") -> RunCheckpoint:
        return RunCheckpoint(tmp_path / "kept", seconds, {"a": name}, resume=True, command="sluice crosses")

    def write(folder: Path, *more: object) -> None:
        found = search(*arguments, *more)  # type: ignore[arg-type]
        save_array(folder / "adjacency.npy", np.stack(found.adjacency))
        (folder / "losses").write_text(str([entry.model_dump(exclude={"seconds"}) for entry in found.history]))

    assert in_fork(lambda: write(tmp_path / "whole")) == 0
    first = in_fork(lambda: search(*arguments, stopped_at(3, kind), kept()))
    second = in_fork(lambda: search(*arguments, stopped_at(9, kind), kept()))
    assert [first, second] == [-kind if kind == signal.SIGKILL else 1] * 2
    reached = kept().latest(SearchProgress)
    assert reached is not None
    assert (reached.epoch, reached.batch) == ((1, 10) if kind == signal.SIGKILL else (2, 2))
    with pytest.raises(ConfigError, match=r"a \(1 there, 2 now\).*`sluice crosses` without --resume"):
        search(*arguments, None, kept("2"))
    assert in_fork(lambda: write(tmp_path / "again", None, kept())) == 0
    for name in ("adjacency.npy", "losses"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
