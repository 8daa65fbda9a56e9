from __future__ import annotations

from contracts import commit
from contracts.commit import present_commit


def test_a_commit_has_the_asked_number_of_digits_and_says_whether_files_were_changed():
    long, short = present_commit(), present_commit(digits=12)
    assert (long is None) == (short is None)
    if long and short:  # a checkout, and not an installed package
        assert len(long.removesuffix("-dirty")) == 40
        assert long.startswith(short.removesuffix("-dirty"))


def test_outside_a_repository_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(commit, "__file__", str(tmp_path / "commit.py"))
    assert present_commit() is None
