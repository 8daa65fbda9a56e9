from __future__ import annotations

import numpy as np

from models.examples.validation_half import halves


def test_fresh_examples_read_the_twin_of_a_column_that_has_one(make_task) -> None:
    task = make_task()
    slot = next(slot for slot in task.spec.block_dense("candidate") if slot.field == "price")
    plain, fresh = (next(task.examples("test", kind).batches(600)).candidate.dense for kind in (False, True))
    change = 1.0 / task.spec.by_name["price"].std
    np.testing.assert_allclose(fresh[:, slot.start], plain[:, slot.start] + change, rtol=1e-5)


def test_early_stopping_reads_the_half_that_does_not_calibrate(make_task) -> None:
    task = make_task()
    half = halves(task.examples("validation"))
    rows = task.examples("validation").column("_row")
    assert set(task.early_stopping().column("_row").tolist()) == set(rows[half == 0].tolist())
    assert 0 < (half == 0).sum() < len(half)
