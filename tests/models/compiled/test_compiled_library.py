from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

from models.compiled.compiled_library import compiled, compiler

FLAGS = ("-shared", "-fPIC")


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    where = compiler()
    if where is None:
        pytest.skip("no C++ compiler on this machine")
    return where


def sources(folder: Path, number: int) -> tuple[Path, Path]:
    header, source = folder / "number.h", folder / "number.cpp"
    header.write_text(f"constexpr int NUMBER = {number};\n")
    source.write_text('#include "number.h"\nextern "C" int number() { return NUMBER; }\n')
    return source, header


def number_in(library: Path) -> int:
    return int(ctypes.CDLL(str(library)).number())


def test_it_is_made_once_and_anew_where_a_header_changes(found: str, tmp_path: Path) -> None:
    source, header = sources(tmp_path, 3)
    first = compiled("number", found, [source], FLAGS, [header])
    made = first.stat().st_mtime_ns
    assert number_in(first) == 3
    assert compiled("number", found, [source], FLAGS, [header]).stat().st_mtime_ns == made
    sources(tmp_path, 4)
    second = compiled("number", found, [source], FLAGS, [header])
    assert second != first
    assert number_in(second) == 4


def test_what_cannot_be_compiled_or_linked_leaves_nothing(found: str, tmp_path: Path) -> None:
    source, header = sources(tmp_path, 3)
    with pytest.raises(subprocess.CalledProcessError):
        compiled("number", found, [source], FLAGS, [header], ["-lno_such_library_at_all"])
    source.write_text("no C++")
    with pytest.raises(subprocess.CalledProcessError):
        compiled("number", found, [source], FLAGS, [header])
    assert list((tmp_path / "cache" / "sluice").iterdir()) == []


def test_there_may_be_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert compiler() is None
