"""What is finished is kept, and nothing else: every change that weights depend on, and every broken folder."""

from __future__ import annotations

from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from contracts.artifacts import WEIGHTS
from contracts.errors import ConfigError
from contracts.summaries import summary
from contracts.summaries.summary import FILE
from contracts.summaries.train import LightgbmSummary
from models.distributed.run_checkpoint import Progress, RunCheckpoint, State
from models.distributed.world import ALONE
from models.jobs.resume import (
    clear_runs,
    digest,
    finished,
    forget_other_runs,
    kept_alone,
    kept_run,
    take_summary_away,
)


def kept(task, name: str = "lightgbm") -> LightgbmSummary:
    """Writes a finished folder: any weights, and the shortest summary that carries a digest."""
    found = LightgbmSummary(name=name, auc=0.7, validation_auc=0.7, rows=9, seconds=1.0, digest=digest(task, name))
    summary.write(task.out.model(name), found)
    (task.out.model(name) / WEIGHTS).touch()
    return found


def test_a_finished_model_is_found(make_task) -> None:
    task = make_task()
    assert finished(task, "lightgbm", LightgbmSummary) is None
    assert kept(task) == finished(task, "lightgbm", LightgbmSummary)
    assert finished(replace(task, force=True), "lightgbm", LightgbmSummary) is None


@pytest.mark.parametrize("change", [{"dropout": 0.4}, {"epochs": 2}, {"tower_dim": 6}])
def test_other_settings_are_another_model(make_task, change) -> None:
    kept(make_task())
    assert finished(make_task(**change), "lightgbm", LightgbmSummary) is None


@pytest.mark.parametrize("change", [{"models": ["dnn"]}, {"ranker": "logistic_regression"}, {"warm_start": ""}])
def test_which_other_models_there_are_changes_none(make_task, change) -> None:
    assert digest(make_task(), "dnn") == digest(make_task(**change), "dnn")


def test_the_digest_moves_with_name_seed_and_examples(make_task) -> None:
    task = make_task()
    before = digest(task, "dnn")
    assert len({before, digest(task, "din"), digest(replace(task, seed=4), "dnn")}) == 3
    path = next(task.out.examples("train").glob("day=*/*.parquet"))
    pq.write_table(pq.read_table(path).slice(1), path)
    assert digest(task, "dnn") != before


def test_the_towers_alone_know_their_quota_of_candidates(make_task) -> None:
    """By it they are compared with popularity for unknown requesters."""
    task = make_task()
    retrieve = task.config.retrieve.model_copy(update={"two_tower": 5})
    other = replace(task, config=task.config.model_copy(update={"retrieve": retrieve}))
    assert digest(other, "two_tower") != digest(task, "two_tower")
    assert digest(other, "dnn") == digest(task, "dnn")


@pytest.mark.parametrize("broken", ["weights", "json", "record"])
def test_a_broken_folder_is_trained_again(make_task, broken) -> None:
    task = make_task()
    kept(task)
    folder = task.out.model("lightgbm")
    if broken == "weights":
        (folder / WEIGHTS).unlink()
    else:
        (folder / FILE).write_text("{" if broken == "json" else '{"auc": 0.7}', encoding="utf-8")
    assert finished(task, "lightgbm", LightgbmSummary) is None


def test_a_summary_goes_before_the_weights_it_describes(make_task) -> None:
    task = make_task()
    kept(task)
    take_summary_away(task, "lightgbm")
    assert not (task.out.model("lightgbm") / FILE).exists()
    take_summary_away(task, "lightgbm")


def test_members_of_an_ensemble_keep_their_runs_apart(make_task) -> None:
    task = make_task(checkpoint_minutes=1.0, ensemble=2)
    first, second = kept_run(task, "dnn"), kept_run(task, "dnn", 1)
    assert first is not None
    assert second is not None
    assert first.folder.parent == second.folder.parent
    assert first.folder != second.folder
    assert first.identity != second.identity


def run_of(task) -> RunCheckpoint:
    found = kept_run(task, "dnn")
    assert found is not None
    return found


@pytest.mark.parametrize(("change", "said"), [
    ({"dropout": 0.4}, r"train\.dropout \(0\.1 there, 0\.4 now\)"), ({"seed": 4}, r"seed \(3 there, 4 now\)"),
    ({"rows": 1}, "examples")])
def test_a_checkpoint_of_another_run_is_refused_with_what_differs(make_task, change, said) -> None:
    plain = {"checkpoint_minutes": 1.0, "dropout": 0.1}
    run_of(make_task(**plain)).write(Progress(), State({}, {}), ALONE)
    task = make_task(**plain | {name: value for name, value in change.items() if name == "dropout"})
    if "rows" in change:
        path = next(task.out.examples("train").glob("day=*/*.parquet"))
        pq.write_table(pq.read_table(path).slice(1), path)
    again = replace(task, resume=True, seed=change.get("seed", task.seed))
    with pytest.raises(ConfigError, match=f"differs in {said}.*without --resume"):
        run_of(again).latest(Progress)


def test_a_run_that_begins_anew_leaves_no_checkpoint_of_an_older_one_for_its_resumption_to_meet(make_task) -> None:
    """Be it of a model that it has not come to when it is stopped; what is of the same run stays."""
    older, newer = (make_task(checkpoint_minutes=1.0, dropout=dropout) for dropout in (0.1, 0.4))
    for name, member, task in (("dnn", 0, older), ("dnn", 1, older), ("din", 0, newer), ("two_tower", 0, older)):
        kept_run(task, name, member).write(Progress(batch=3), State({}, {}), ALONE)  # type: ignore[union-attr]
    channel = kept_alone(older, older.out.channel("sasrec"), {"rounds": "2"})
    assert channel is not None
    channel.write(Progress(), State({}, {}), ALONE)
    names = ("dnn", "din", "two_tower")
    forget_other_runs(replace(newer, resume=True), names)
    forget_other_runs(newer, names, ["sasrec"])
    again = replace(newer, resume=True)
    reached = [kept_run(again, *of).latest(Progress)  # type: ignore[union-attr]
               for of in (("dnn", 0), ("dnn", 1), ("two_tower", 0))]
    assert reached == [None] * 3
    assert kept_run(again, "din").latest(Progress).batch == 3  # type: ignore[union-attr]
    other = kept_alone(again, again.out.channel("sasrec"), {"rounds": "3"})
    assert other is not None
    assert other.latest(Progress) is None


def test_more_time_between_checkpoints_is_the_same_run(make_task) -> None:
    run_of(make_task(checkpoint_minutes=1.0)).write(Progress(batch=3), State({}, {}), ALONE)
    again = run_of(replace(make_task(checkpoint_minutes=5.0), resume=True))
    reached = again.latest(Progress)
    assert reached is not None
    assert reached.batch == 3
    clear_runs(make_task(), "dnn")
    assert again.latest(Progress) is None


def test_processes_in_the_place_of_dead_ones_go_on_where_these_were(
    make_task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another run has left is no reason to refuse: nobody asked to resume that."""
    monkeypatch.delenv("TORCHELASTIC_RESTART_COUNT", raising=False)
    task = make_task(checkpoint_minutes=1.0, dropout=0.1)
    run_of(task).write(Progress(batch=3), State({}, {}), ALONE)
    assert run_of(task).latest(Progress) is None
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    reached = run_of(task).latest(Progress)
    assert reached is not None
    assert reached.batch == 3
    assert run_of(make_task(checkpoint_minutes=1.0, dropout=0.4)).latest(Progress) is None
