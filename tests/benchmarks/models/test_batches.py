from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq

from benchmarks.models.batches import main, rate, spec, write
from models.examples.batches import ExampleSet
from tests.benchmarks.printed_figures import all_finite, last_line, refuses


def test_reading_batches_stands_beside_a_plain_read(capsys):
    main(["--rows", "3000"])
    found = last_line(capsys.readouterr().out)
    assert set(found) == {"in_order", "shuffled", "floor"}
    assert all_finite(found)
    assert min(found.values()) > 0


def test_the_examples_are_what_their_spec_says(tmp_path):
    layout = spec()
    path = write(tmp_path, layout, 500)
    (file,) = path.glob("day=*/*.parquet")
    examples = ExampleSet(path, layout)
    assert pq.read_metadata(file).num_rows == examples.rows == 500
    for slot in layout.id_slots():
        ids = examples.column(slot.name)
        assert ids.shape == ((500,) if slot.width == 1 else (500, slot.width))
        assert ids.min() >= 0
        assert ids.max() < slot.size
    assert set(np.unique(examples.column("_label"))) <= {0.0, 1.0}


def test_a_rate_is_rows_over_the_fastest_of_the_rounds():
    calls: list[int] = []

    def read() -> None:
        calls.append(sum(range(100_000)))

    assert rate(1000, read, rounds=2) > 0
    assert len(calls) == 3  # the first warms up


def test_a_wrong_option_is_refused():
    assert refuses(main, "--row", "many")
