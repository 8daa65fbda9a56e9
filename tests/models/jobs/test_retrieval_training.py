from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from contracts.artifacts import CALIBRATION, WEIGHTS, WINDOWS
from contracts.bundle.bundle import SCHEMA_VERSION, Manifest, load_weights
from contracts.features import vocabulary
from contracts.features.vocabulary import Vocabulary
from contracts.summaries.bundle import BundleMetrics, ParityFigures
from models.evaluation import slot_calibration
from models.evaluation.calibration import Calibration
from models.examples.validation_half import halves
from models.jobs.retrieval_training import PRE_RANKER, TOWER, build_towers, train_retrieval
from models.networks.tower_pre_ranker import PreRanker
from models.training import checkpoint, fitting
from models.training.warm_start import Parent


def test_both_are_saved_calibrated_and_kept(make_task) -> None:
    task = make_task()
    found = train_retrieval(task)
    for name in (TOWER, PRE_RANKER):
        assert (task.out.model(name) / CALIBRATION).exists()
        assert (task.out.model(name) / WEIGHTS).exists()
    checkpoint.load(build_towers(task.spec, task.config.train), task.out.model(TOWER) / WEIGHTS)
    assert found.two_tower.recall is not None
    assert set(found.two_tower.recall) == {"10", "20", "100"}
    assert found.two_tower.recall["100"].two_tower == 1.0
    again = replace(task, on_progress=lambda what, done, total: pytest.fail("trained again"))
    assert train_retrieval(again) == found


def test_the_towers_probabilities_are_those_of_the_first_slot(make_task, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slot_calibration, "ENOUGH", 1)  # few rows are here
    task = make_task("dot_product")
    for window in WINDOWS:  # clicks of the other slots were not seen
        for path in task.out.examples(window).glob("*/*.parquet"):
            table = pq.read_table(path)
            label = pc.if_else(pc.equal(table["_position"], 1), table["_label"], 0.0)
            pq.write_table(table.set_column(table.schema.get_field_index("_label"), "_label", label), path)
    found = train_retrieval(task).two_tower
    towers = build_towers(task.spec, task.config.train)
    checkpoint.load(towers, task.out.model(TOWER) / WEIGHTS)
    validation = task.examples("validation")
    rows = (halves(validation) == 1) & (validation.column("_position") == 1)
    curve = Calibration.from_arrays(load_weights(task.out.model(TOWER) / CALIBRATION))
    told = curve.apply(fitting.predict(towers, validation)[rows])
    assert told.mean() == pytest.approx(validation.column("_label")[rows].mean(), rel=1e-3)
    assert found.predicted_over_observed == pytest.approx(1.0, abs=0.3)


def test_another_pre_ranker_leaves_the_towers_alone(make_task) -> None:
    task = make_task("dot_product")
    assert train_retrieval(task).pre_ranker is None
    assert not task.out.model(PRE_RANKER).exists()


@pytest.mark.parametrize(("tower_hidden", "warm"), [([8], True), ([12], False)])
def test_a_pre_ranker_starts_from_the_parents_where_its_towers_do(
    make_task, tmp_path: Path, tower_hidden: list[int], warm: bool
) -> None:
    first, task = make_task(tower_hidden=[8]), make_task(tower_hidden=tower_hidden)
    keys = {field.vocabulary or field.name: Vocabulary.of([*map(str, range(field.size - 2))], "string")
            for field in task.spec.fields if field.kind in ("categorical", "sequence", "multi_valued")}
    for name, values in keys.items():
        vocabulary.write(task.out.encoding, name, values)
    settings = first.config.train
    towers = build_towers(first.spec, settings)
    checkpoint.save(towers, tmp_path / "parent" / "retrieval" / "towers.safetensors")
    checkpoint.save(PreRanker(settings.tower_dim, first.config.prerank.hidden), tmp_path / "parent/prerank" / WEIGHTS)
    metrics = BundleMetrics(ranker="dnn", parity=ParityFigures(rows=0, mismatches=0, max_logit_difference=0.0))
    manifest = Manifest(schema_version=SCHEMA_VERSION, name="tiny", content_hash="0" * 64, created=datetime.now(UTC),
                        files={}, metrics=metrics)
    found = train_retrieval(replace(task, parent=Parent(tmp_path / "parent", manifest, first.spec, keys, first.config)))
    assert found.pre_ranker is not None
    assert found.two_tower.warm_start is not None
    assert (found.two_tower.warm_start.cold is None) == warm
    assert (found.pre_ranker.warm_start is not None) == warm
