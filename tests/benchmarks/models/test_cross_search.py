from __future__ import annotations

import numpy as np
import pytest

from benchmarks.models.cross_search import DAYS, main, write
from contracts.artifacts import LABEL
from models.examples.batches import ExampleSet
from tests.benchmarks.printed_figures import all_finite, last_line, refuses


def test_the_search_stands_beside_a_dnn_on_the_same_rows(capsys):
    main(["--rows", "3000", "--fields", "4", "--layers", "1", "2", "--values", "12"])
    found = last_line(capsys.readouterr().out)
    assert all_finite(found)
    assert [(row["fields"], row["layers"]) for row in found] == [(4, 1), (4, 2)]
    assert len({row["dnn_seconds"] for row in found}) == 1  # the DNN is trained once for all layers
    for row in found:
        assert row["factor"] == pytest.approx(row["seconds"] / row["dnn_seconds"])


def test_the_label_depends_on_two_fields_together(tmp_path):
    examples = ExampleSet(tmp_path, write(tmp_path, 3, 20_000, 40))
    assert len(list(tmp_path.glob("day=*"))) == DAYS
    assert len(np.unique(examples.column("f2"))) == 40
    label = examples.column(LABEL)
    both = np.all([examples.column(name) % 4 == 0 for name in ("f0", "f1")], axis=0)
    assert label[both].mean() > 2 * label[~both].mean()


def test_a_wrong_option_is_refused():
    assert refuses(main, "--layers", "deep")
