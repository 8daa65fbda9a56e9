"""A file or folder takes another's place, with the exchange of the system and without it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from contracts import atomic_write
from contracts.atomic_write import aside, durable, put_in_place, remove, write_json


def folder(path: Path, text: str) -> Path:
    path.mkdir()
    (path / "file").write_text(text)
    return path


@pytest.mark.parametrize("with_exchange", [True, False])
def test_the_new_one_stands_there_and_nothing_else_is_left(tmp_path, monkeypatch, with_exchange):
    if not with_exchange:
        monkeypatch.setattr(atomic_write, "exchanged", lambda left, right: False)
    target = tmp_path / "day=1"
    for text in ("one", "two", "three"):
        put_in_place(folder(tmp_path / ".staging", text), target)
        assert (target / "file").read_text() == text
        assert os.listdir(tmp_path) == ["day=1"]


@pytest.mark.parametrize("with_exchange", [True, False])
@pytest.mark.parametrize("leads_on", [True, False])
def test_a_link_gives_way_and_what_it_leads_to_stays(tmp_path, monkeypatch, with_exchange, leads_on):
    if not with_exchange:
        monkeypatch.setattr(atomic_write, "exchanged", lambda left, right: False)
    first, link = folder(tmp_path / "v1", "one"), tmp_path / "served"
    link.symlink_to(first.name if leads_on else "gone")
    for text in ("two", "three"):
        put_in_place(folder(tmp_path / ".staging", text), link)
        assert (link / "file").read_text() == text
        assert (first / "file").read_text() == "one"
        assert sorted(os.listdir(tmp_path)) == ["served", "v1"]


def test_a_folder_and_a_link_are_removed_and_what_is_gone_is_no_fault(tmp_path):
    kept, link = folder(tmp_path / "kept", "mine"), tmp_path / "link"
    link.symlink_to(kept)
    for path in (link, folder(tmp_path / "other", "x"), tmp_path / "nothing"):
        remove(path)
    assert os.listdir(tmp_path) == ["kept"]
    assert (kept / "file").read_text() == "mine"


def test_without_a_successor_the_old_one_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_write, "exchanged", lambda left, right: False)
    target = folder(tmp_path / "day=1", "one")
    with pytest.raises(FileNotFoundError):
        put_in_place(tmp_path / "nothing", target)
    assert (target / "file").read_text() == "one"


def test_an_exchange_leaves_both(tmp_path):
    left, right = folder(tmp_path / "left", "l"), folder(tmp_path / "right", "r")
    if not atomic_write.exchanged(left, right):
        pytest.skip("this system has no exchange of folders")
    assert [(path / "file").read_text() for path in (left, right)] == ["r", "l"]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "folder" / "file.json"
    write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, {"a": float("nan")})
    with pytest.raises(RuntimeError), aside(path) as draft:  # noqa: PT012
        draft.write_text("half")
        raise RuntimeError
    assert path.read_text() == '{\n "a": 1\n}\n'
    assert os.listdir(path.parent) == ["file.json"]


def test_what_must_outlive_a_loss_of_power_is_on_the_disk_and_so_is_its_name(tmp_path, monkeypatch):
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor):
        real(descriptor)
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))

    monkeypatch.setattr(os, "fsync", fsync)
    with durable(tmp_path / "memory") as draft:
        draft.write_text("what was promised")
    assert (tmp_path / "memory").read_text() == "what was promised"
    assert [str(draft), str(tmp_path)] == synced
