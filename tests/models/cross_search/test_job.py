from __future__ import annotations

import itertools
import json
import os
import pickle
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.artifacts import Artifacts
from contracts.config.config import Config, parse
from contracts.errors import ConfigError, DataError, NothingToCrossError, SluiceError
from contracts.features import found_crosses
from contracts.summaries.crosses import CrossesSummary
from models.cross_search.job import OpenRivals, compare, compare_ahead, find_crosses
from models.distributed.run_checkpoint import RunCheckpoint
from models.distributed.world import World
from tests.models.crossed_world import (
    FIELDS,
    crossed_columns,
    crossed_spec,
    pair_logit,
    parity_logit,
    triple_logit,
    write_examples,
)

SIDES = ("user", "context", "item")


@pytest.fixture(scope="module", autouse=True)
def _one_data_base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path_factory.mktemp('tracking') / 'mlflow.db'}")
        yield


def config(**crosses: Any) -> Config:
    fields = "".join(f'[[fields]]\nname = "f{i}"\nkind = "categorical"\nside = "{SIDES[i * 3 // FIELDS]}"\n'
                     for i in range(FIELDS))
    settings = {"batch_size": 128, "epochs": 4, "compare_rows": 0, "min_count": 1, **crosses}
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())
    text = ('name = "crossed"\n[log]\npath = "x"\nevent_time = "t"\n[label]\nexpression = "y"\n'
            f'[train]\nembedding_dim = 4\nhidden = [16]\nbatch_size = 256\nepochs = 2\n[crosses]\n{lines}{fields}')
    return parse(text)


def world(folder: Path, logit: Callable[[np.ndarray], np.ndarray]) -> Artifacts:
    out = Artifacts(folder)
    out.encoding.mkdir(parents=True)
    crossed_spec().model_copy(update={"has_users": True}).write(out.encoding)
    for seed, window in enumerate(("train", "validation", "test")):
        write_examples(out.examples(window), crossed_columns(logit, rows=8000 if seed == 0 else 2000, seed=seed))
    return out


def searched(config: Config, out: Artifacts, force: bool = False) -> CrossesSummary:
    return find_crosses(config, out, force=force)[0]


def parts(figures: CrossesSummary) -> set[frozenset[str]]:
    return {frozenset(cross.parts) for cross in figures.crosses}


@pytest.mark.slow
def test_a_planted_triple_is_found_in_the_training_window(tmp_path: Path) -> None:
    out = world(tmp_path, triple_logit())
    figures = searched(config(), out)
    assert frozenset({"f0", "f2", "f4"}) in parts(figures)
    assert figures.split == "time"
    found = found_crosses.read(out.crosses)
    assert found is not None
    assert [cross.name for cross in found.crosses] == [cross.name for cross in figures.crosses]
    assert len(list(out.crosses.glob("adjacency_*.npy"))) == 2


@pytest.mark.slow
def test_an_equal_search_is_not_done_twice(tmp_path: Path) -> None:
    out = world(tmp_path, pair_logit(0, 4))
    first = searched(config(), out)
    assert searched(config(), out) == first
    assert searched(config(budget=1), out).seconds != first.seconds
    again = searched(config(), out, force=True)
    assert again.crosses == first.crosses


def test_a_search_in_examples_of_a_field_that_is_gone_names_the_job_that_makes_them_again(tmp_path: Path) -> None:
    fewer = config().model_copy(update={"fields": config().fields[1:]})
    with pytest.raises(DataError, match=r"'f0'.*run `sluice features` first"):
        searched(fewer, world(tmp_path, pair_logit(0, 4)), force=True)


@pytest.mark.slow
def test_the_search_sees_the_training_window_alone(tmp_path: Path) -> None:
    logit = pair_logit(0, 4)
    out = world(tmp_path, logit)
    first = searched(config(), out)
    for window in ("validation", "test"):
        shutil.rmtree(out.examples(window))
        write_examples(out.examples(window), crossed_columns(lambda ids: -logit(ids), rows=2000, seed=9))
    assert searched(config(), out, force=True).crosses == first.crosses


@pytest.mark.slow
def test_budgets_are_respected(tmp_path: Path) -> None:
    first, second = pair_logit(0, 4), pair_logit(1, 3)
    out = world(tmp_path, lambda ids: first(ids) + second(ids))
    assert len(searched(config(), out).crosses) >= 2
    assert len(searched(config(budget=1), out).crosses) == 1
    assert searched(config(max_keys=10), out).crosses == ()


@pytest.mark.slow
def test_a_pure_parity_of_three_is_the_known_limit(tmp_path: Path) -> None:
    """No pair inside it says anything, so a search in increasing order never comes to the triple."""
    figures = searched(config(), world(tmp_path, parity_logit(0, 2, 4)))
    assert frozenset({"f0", "f2", "f4"}) not in parts(figures)


@pytest.mark.slow
def test_a_parity_of_two_is_found_where_it_is_proposed(tmp_path: Path) -> None:
    """Products of embeddings see a pair that neither field hints at: more than the premise of the search promises."""
    figures = searched(config(thresholds=[0.0, 1.0]), world(tmp_path, parity_logit(1, 4)))
    assert frozenset({"f1", "f4"}) in parts(figures)


def test_nothing_to_cross_is_said(tmp_path: Path) -> None:
    out = world(tmp_path, pair_logit(0, 4))
    spec = crossed_spec()
    spec.model_copy(update={"fields": spec.fields[:1], "has_users": True}).write(out.encoding)
    with pytest.raises(NothingToCrossError, match="no two of the columns f0 can be crossed"):
        searched(config(), out)


@pytest.mark.slow
def test_a_search_without_its_comparison_is_done_again_and_one_with_it_is_kept(tmp_path: Path) -> None:
    out, wanted = world(tmp_path, pair_logit(0, 4)), config(compare_rows=1000)
    found, comparison = find_crosses(wanted, out)
    assert found.variants is None
    assert comparison is not None
    again, comparison = find_crosses(wanted, out)
    assert comparison is not None
    compared = compare(pickle.loads(pickle.dumps(comparison)))
    assert compared.crosses == again.crosses == found.crosses
    assert compared.variants is not None
    assert compared.variants["fives"].crosses == len(found.crosses)
    assert set(compared.phases) == {"search", "prune", "compare"}
    assert compared.seconds == pytest.approx(again.seconds + compared.phases["compare"])
    assert find_crosses(wanted, out) == (compared, None)


@pytest.mark.slow
def test_rivals_made_beside_a_search_read_examples_as_they_were_and_change_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, wanted = world(tmp_path / "out", pair_logit(0, 4)), config(compare_rows=1000)
    alone = world(tmp_path / "alone", pair_logit(0, 4))
    _, undisturbed = find_crosses(wanted, alone)
    assert undisturbed is not None
    expected = compare(undisturbed)
    told: list[OpenRivals] = []
    _, comparison = find_crosses(wanted, out, beside=told.append)
    assert comparison is not None
    moved = tmp_path / "moved"
    (out.out / "examples").rename(moved)  # as files that are written again are gone
    compare_ahead(pickle.loads(pickle.dumps(told[0])))
    moved.rename(out.out / "examples")
    monkeypatch.setattr("models.cross_search.comparison.logistic_variants", None)
    found = compare(pickle.loads(pickle.dumps(comparison)))
    apart = {"seconds", "phases", "rows_per_second", "history"}
    assert found.model_dump(exclude=apart) == expected.model_dump(exclude=apart)
    assert not told[0].plain.out.exists()
    assert not [*out.crosses.glob("checkpoints*")]


@pytest.mark.slow
def test_a_search_that_was_ended_goes_on_by_resume_and_no_other_does(tmp_path: Path) -> None:
    plain = config(epochs=1)
    kept = plain.model_copy(update={"train": plain.train.model_copy(update={"checkpoint_minutes": 1e-9})})
    out, whole = world(tmp_path / "out", pair_logit(0, 3)), world(tmp_path / "whole", pair_logit(0, 3))
    batches: list[int] = []

    def end(_: str, done: int, __: int) -> None:
        if done == 9:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        find_crosses(kept, out, on_progress=end)
    other = kept.model_copy(update={"crosses": kept.crosses.model_copy(update={"min_gain": 7.0})})
    with pytest.raises(ConfigError, match=r"crosses\.min_gain \(3\.0 there, 7\.0 now\)"):
        find_crosses(other, out, resume=True)
    found, _ = find_crosses(kept, out, resume=True, on_progress=lambda _, done, __: batches.append(done))
    assert batches[0] == 9
    expected, _ = find_crosses(plain, whole)
    assert found.crosses == expected.crosses
    assert not (out.crosses / "checkpoints").exists()


def told_to_end(monkeypatch: pytest.MonkeyPatch, update: int) -> None:
    """By the kernel, before the end of that update of whatever is trained."""
    real, done = RunCheckpoint.wish, itertools.count(1)

    def wish(kept: RunCheckpoint, world: World) -> float:
        if next(done) == update:
            os.kill(os.getpid(), signal.SIGTERM)
        return real(kept, world)

    monkeypatch.setattr(RunCheckpoint, "wish", wish)


@pytest.mark.slow
def test_a_comparison_that_was_told_to_end_goes_on_by_resume_without_another_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = config(epochs=1, compare_rows=1000)
    wanted = wanted.model_copy(update={"train": wanted.train.model_copy(update={"patience": 2})})
    out, whole = world(tmp_path / "out", pair_logit(0, 3)), world(tmp_path / "whole", pair_logit(0, 3))
    _, undisturbed = find_crosses(wanted, whole)
    assert undisturbed is not None
    expected = compare(undisturbed)
    _, comparison = find_crosses(wanted, out)
    assert comparison is not None
    with monkeypatch.context() as patch:
        told_to_end(patch, 13)
        with pytest.raises(SluiceError, match="`sluice crosses --resume` goes on"):
            compare(comparison)
    batches: list[int] = []
    _, again = find_crosses(wanted, out, resume=True, on_progress=lambda _, done, __: batches.append(done))
    assert not batches, "the search was done again"
    assert again is not None
    found = compare(pickle.loads(pickle.dumps(again)))
    apart = {"seconds", "phases", "rows_per_second", "history"}
    assert found.model_dump(exclude=apart) == expected.model_dump(exclude=apart)
    assert not [*out.crosses.glob("checkpoints*")]
