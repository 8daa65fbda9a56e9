"""The check on examples with a known answer: what leaks is found, what is merely strong is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.artifacts import Artifacts
from contracts.config.config import Config, parse
from contracts.features import vocabulary
from contracts.features.feature_spec import FeatureField, FeatureSpec
from contracts.features.vocabulary import Vocabulary
from contracts.summaries import summary
from contracts.summaries.leaks import LeaksSummary
from models.leakage.leak_check import FEWEST, MOST_ROWS, TRAIN_ROWS, check_for_leaks, rows_wanted
from tests.heard_progress import counts, heard, names

DAYS, ROWS = 8, 6000
FIELDS = ("duration", "age", "job", "city", "tags")
Change = Callable[[dict[str, np.ndarray], np.ndarray, bool], None]


def spec() -> FeatureSpec:
    numbers = [FeatureField(name=name, kind="numeric", side="context") for name in FIELDS[:2]]
    keys = [FeatureField(name=name, kind="categorical", side="context", vocabulary=name, size=12)
            for name in FIELDS[2:4]]
    tags = FeatureField(name="tags", kind="multi_valued", side="item", vocabulary="tags", size=12, length=3)
    return FeatureSpec(fields=(*numbers, *keys, tags), has_users=False)


def config(timed: bool = True) -> Config:
    time = 'event_time = "t"\n' if timed else ""
    fields = "".join(f'[[fields]]\nname = "{name}"\nkind = "categorical"\nside = "context"\n' for name in FIELDS)
    return parse(f'name = "x"\n[log]\npath = "p"\n{time}[label]\nexpression = "y = 1"\n{fields}')


def leave_as_is(columns: dict[str, np.ndarray], label: np.ndarray, training: bool) -> None:
    return


def world(folder: Path, write: Any, change: Change = leave_as_is, rows: int = ROWS) -> Artifacts:
    """job, city, age and tags share what can be known before; `change` makes a column leak."""
    out = Artifacts(folder)
    out.encoding.mkdir(parents=True)
    spec().write(out.encoding)
    for name in FIELDS[2:]:
        vocabulary.write(out.encoding, name, Vocabulary.of([f"{name}{key}" for key in range(10)], "string"))
    for seed, window in enumerate(("train", "validation")):
        random = np.random.default_rng(seed)
        taste = random.normal(size=rows)
        label = (random.random(rows) < 1 / (1 + np.exp(1.5 - 1.2 * taste))).astype(np.float64)

        def like(noise: float, taste: np.ndarray = taste, random: np.random.Generator = random) -> np.ndarray:
            return np.clip((taste + noise * random.normal(size=len(taste))) * 2 + 7, 2, 11).astype(np.int32)

        columns = {"duration": random.gamma(2, 100, rows), "age": 40 + 10 * taste + random.normal(0, 5, rows),
                   "job": like(0.5), "city": like(2.0), "tags": np.stack([like(1.0), like(2.0), like(2.0)], axis=1)}
        change(columns, label, window == "train")
        columns |= {"_label": label, "_row": random.integers(-(2**62), 2**62, rows)}
        for day in range(DAYS):
            part = slice(day * rows // DAYS, (day + 1) * rows // DAYS)
            one = write(folder / f"{window}{day}", {name: values[part] for name, values in columns.items()}, files=1)
            out.examples(window).mkdir(parents=True, exist_ok=True)
            next(one.iterdir()).rename(out.examples(window) / f"day=2026-01-{day + 1:02d}")
    return out


def test_a_table_without_a_leak_is_quiet_and_the_planted_one_is_found(tmp_path: Path, write: Any) -> None:
    found = check_for_leaks(config(), world(tmp_path, write))
    assert found.suspected == {}
    assert found.planted_found
    assert found.fields["job"].auc > 0.7
    assert abs(found.fields["duration"].auc - 0.5) < 0.05
    assert summary.read(tmp_path / "leaks", LeaksSummary) == found


def _duration(columns: dict[str, np.ndarray], label: np.ndarray, training: bool) -> None:
    columns["duration"] = columns["duration"] * (1 + 2.5 * label)


def _copy(columns: dict[str, np.ndarray], label: np.ndarray, training: bool) -> None:
    columns["city"] = np.where(label > 0, 5, np.where(columns["city"] == 5, 6, columns["city"])).astype(np.int32)


def _filled_in_later(columns: dict[str, np.ndarray], label: np.ndarray, training: bool) -> None:
    random = np.random.default_rng(9)
    columns["duration"] = np.where((label > 0) & (random.random(len(label)) < 0.8), columns["duration"], np.nan)


def _row_counter(columns: dict[str, np.ndarray], label: np.ndarray, training: bool) -> None:
    columns["duration"] = np.arange(len(label), dtype=np.float64)


def _made_of_training_labels(columns: dict[str, np.ndarray], label: np.ndarray, training: bool) -> None:
    noise = np.random.default_rng(4).normal(size=len(label))
    columns["age"] = noise + 1.2 * label * training


@pytest.mark.parametrize(
    ("change", "field", "kind"),
    [
        (_duration, "duration", "irreplaceable"),
        (_copy, "city", "near copy"),
        (_filled_in_later, "duration", "after"),
        (_row_counter, "duration", "clock"),
        (_made_of_training_labels, "age", "fading"),
    ],
)
def test_each_leak_is_found_with_its_reason_and_its_picture(
    change: Change, field: str, kind: str, tmp_path: Path, write: Any
) -> None:
    found = check_for_leaks(config(), world(tmp_path, write, change))
    assert list(found.suspected) == [field]
    entry = found.suspected[field]
    assert kind in entry.kinds
    assert len(entry.reasons) == len(entry.kinds)
    rates = [group.rate for group in entry.profile]
    assert sum(group.share for group in entry.profile) >= 0.999
    assert kind == "clock" or max(rates) > min(rates) + 0.2


def test_a_number_that_is_zero_unless_clicked_is_a_near_copy_when_clicks_are_rare(tmp_path: Path, write: Any) -> None:
    def charged(columns: dict[str, np.ndarray], label: np.ndarray, training: bool) -> None:
        random = np.random.default_rng(5)
        label[:] = random.random(len(label)) < 0.015
        columns["duration"] = np.where(label > 0, random.gamma(2, 1, len(label)), 0.0)

    found = check_for_leaks(config(), world(tmp_path, write, charged, rows=9000))
    assert "near copy" in found.suspected["duration"].kinds
    assert list(found.suspected) == ["duration"]


def test_where_clicks_are_rare_more_rows_are_asked_for_up_to_a_limit() -> None:
    often, seldom, hardly = (np.arange(200_000) % every == 0 for every in (30, 1000, 100_000))
    assert rows_wanted(often) == TRAIN_ROWS
    assert rows_wanted(seldom) * seldom.mean() / 3 == pytest.approx(2 * FEWEST)
    assert rows_wanted(1.0 - seldom) == pytest.approx(rows_wanted(seldom), abs=1)
    assert rows_wanted(hardly) == MOST_ROWS
    assert rows_wanted(np.zeros(9)) == TRAIN_ROWS


def test_without_times_nothing_is_said_about_time(tmp_path: Path, write: Any) -> None:
    found = check_for_leaks(config(timed=False), world(tmp_path, write, _row_counter))
    assert found.suspected == {}
    assert found.fields["duration"].later_auc is None


def test_a_field_of_the_labels_own_column_is_named(tmp_path: Path, write: Any) -> None:
    own = config().model_copy(update={"label": config().label.model_copy(update={"expression": "city = 'x'"})})
    assert check_for_leaks(own, world(tmp_path, write)).suspected["city"].kinds == ("label column",)


def test_too_few_rows_are_not_evaluated_and_it_says_so(tmp_path: Path, write: Any) -> None:
    found = check_for_leaks(config(), world(tmp_path, write, rows=160))
    assert found.skipped is not None
    assert "bring a longer log" in found.skipped
    assert found.suspected == {}


def test_the_same_rows_give_the_same_answer(tmp_path: Path, write: Any) -> None:
    out = world(tmp_path, write)
    first, second = check_for_leaks(config(), out), check_for_leaks(config(), out)
    assert first.model_copy(update={"seconds": 0}) == second.model_copy(update={"seconds": 0})


def test_fields_are_counted_alone_and_on_later_rows(tmp_path: Path, write: Any) -> None:
    with heard() as said:
        found = check_for_leaks(config(), world(tmp_path, write))
    assert names(said) == ["rows", "fields alone", "fields together", "fields later"]
    every = [(done, len(found.fields)) for done in range(len(found.fields) + 1)]
    assert counts(said, "fields alone") == counts(said, "fields later") == every
