"""A summary comes back as it was written, and nothing else passes for one."""

from __future__ import annotations

import json
import math

import pytest

from contracts.errors import DataError
from contracts.summaries.summary import FILE, Summary, kept, read, required, write


class Figures(Summary):
    rows: int
    auc: float | None = None


def test_what_was_written_is_read(tmp_path):
    write(tmp_path / "job", Figures(rows=3, auc=0.5))
    assert read(tmp_path / "job", Figures) == Figures(rows=3, auc=0.5)


def test_what_was_not_made_is_left_out(tmp_path):
    write(tmp_path, Figures(rows=3))
    assert json.loads((tmp_path / FILE).read_text()) == {"rows": 3}
    assert read(tmp_path, Figures) == Figures(rows=3)


def test_a_folder_without_one_has_none_and_says_which_command_makes_it(tmp_path):
    assert read(tmp_path, Figures) is None
    with pytest.raises(DataError, match=r"summary.json is missing; run `sluice train` first"):
        required(tmp_path, Figures, "sluice train")


@pytest.mark.parametrize(
    ("text", "message"),
    [('{"rows": 3, "colour": 1}', "colour"), ('{"rows": "many"}', "rows"), ('{"rows"', "damaged")],
)
def test_another_record_or_a_damaged_file_is_refused_with_the_key(tmp_path, text, message):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(DataError, match=message):
        read(tmp_path, Figures)


def test_to_the_job_that_writes_it_another_record_is_as_good_as_none(tmp_path):
    (tmp_path / FILE).write_text('{"colour": 1}')
    assert kept(tmp_path, Figures) is None
    write(tmp_path, Figures(rows=3))
    assert kept(tmp_path, Figures) == Figures(rows=3)


def test_a_figure_that_is_not_finite_is_never_written(tmp_path):
    write(tmp_path, Figures(rows=1))
    with pytest.raises(ValueError, match="JSON"):
        write(tmp_path, Figures(rows=2, auc=math.nan))
    assert read(tmp_path, Figures) == Figures(rows=1)


def test_a_summary_cannot_be_changed():
    with pytest.raises(ValueError, match="frozen"):
        Figures(rows=1).rows = 2  # type: ignore[misc]
