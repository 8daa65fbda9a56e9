from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.features.feature_spec import FeatureField, FeatureSpec
from models.cross_search.job import without_crosses
from models.cross_search.search_digest import search_digest
from tests.models.crossed_world import crossed_columns, crossed_spec, pair_logit, write_examples

EFFECT = pair_logit(0, 4)


def config(compare_rows: int = 500, **train: object) -> Config:
    return Config.model_validate({
        "name": "t", "log": {"path": "x", "event_time": "t"}, "label": {"expression": "y"}, "train": train,
        "crosses": {"compare_rows": compare_rows},
        "fields": [{"name": "f0", "kind": "categorical", "side": "user"}]})


@pytest.fixture
def out(tmp_path: Path) -> Artifacts:
    for seed, window in enumerate(("train", "validation", "test")):
        write_window(Artifacts(tmp_path), window, EFFECT, seed)
    return Artifacts(tmp_path)


def write_window(out: Artifacts, window: str, logit: Callable[[np.ndarray], np.ndarray], seed: int) -> None:
    shutil.rmtree(out.examples(window), ignore_errors=True)
    write_examples(out.examples(window), crossed_columns(logit, rows=1000, seed=seed))


def digest(config: Config, out: Artifacts) -> str:
    return search_digest(config, out, crossed_spec(), 0)


def test_settings_of_training_that_the_search_uses_make_it_another(out: Artifacts) -> None:
    before = digest(config(), out)
    assert digest(config(clip_norm=3.0), out) != before
    assert digest(config(models=["dcn_v2"], tower_dim=8, checkpoint_minutes=3), out) == before


@pytest.mark.parametrize("window", ["validation", "test"])
def test_windows_that_crosses_are_compared_on_count_where_they_are_compared(window: str, out: Artifacts) -> None:
    alone, compared = digest(config(compare_rows=0), out), digest(config(), out)
    write_window(out, window, lambda ids: -EFFECT(ids), 9)
    assert digest(config(compare_rows=0), out) == alone
    assert digest(config(), out) != compared


Written = Callable[..., str]


@pytest.fixture
def written(tmp_path: Path, spec: FeatureSpec, columns: Any, write: Callable[..., Path]) -> Written:
    """The digest of a window with lists, numbers, users and positions; `change` may do something to its columns."""

    def made(
        change: Callable[[dict[str, np.ndarray]], object] = lambda columns: None, searched: FeatureSpec = spec,
        **files: int,
    ) -> str:
        out = Artifacts(tmp_path)
        shutil.rmtree(out.examples("train"), ignore_errors=True)
        drawn = columns(spec, 3000, 0)
        drawn["_label"] = drawn["item"] % 2
        change(drawn)
        write(out.examples("train"), drawn, **files)
        alone = config(compare_rows=0)
        alone = alone.model_copy(update={"crosses": alone.crosses.model_copy(update={"sample_rows": 1000})})
        return search_digest(alone, out, without_crosses(searched), 0)

    return made


@pytest.mark.parametrize("name", [
    "item", "history", "tags", "price", "price#3", "hour", "_label", "_user", "_position"])
def test_whatever_the_search_reads_of_the_training_window_makes_it_another(written: Written, name: str) -> None:
    """Of any row, be it in the sample that pruning looks at or not."""
    before = written()
    for row in (0, 1500, 2999):
        def change(columns: dict[str, np.ndarray], row: int = row) -> None:
            columns[name][row] = np.where(columns[name][row] == 2, 3, 2)

        assert written(change) != before


def test_the_files_that_rows_lie_in_and_columns_that_are_not_read_do_not(written: Written, spec: FeatureSpec) -> None:
    before = written()
    assert written(lambda columns: columns.pop("both")) == before
    assert written(lambda columns: columns.update(found=columns["item"])) == before
    assert written(row_group=100) == before
    assert written(files=2) != before  # half of the rows are of the first day, where it had been two thirds
    rated = [*spec.fields, FeatureField(name="rate", kind="statistic", side="cross", parts=("user", "item"))]
    assert written(searched=spec.model_copy(update={"fields": tuple(rated)})) == before


def test_another_scale_of_a_number_makes_another_search(written: Written, spec: FeatureSpec) -> None:
    fields = tuple(field.model_copy(update={"mean": 1.0}) if field.name == "price" else field for field in spec.fields)
    assert written(searched=spec.model_copy(update={"fields": fields})) != written()
