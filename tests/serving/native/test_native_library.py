from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.compiled.compiled_library import compiler
from serving.native import native_library


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    def forget() -> None:
        native_library.path.cache_clear()
        native_library.library.cache_clear()

    forget()
    yield
    forget()


def test_without_a_compiler_or_where_it_fails_there_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It fails where gRPC's headers are not there."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for failing in ("no-such-compiler", "false"):
        monkeypatch.setenv("CXX", failing)
        native_library.path.cache_clear()
        native_library.library.cache_clear()
        assert native_library.library() is None


def test_where_grpcs_headers_are_there_is_one() -> None:
    """All other tests of it would be skipped otherwise."""
    found = compiler()
    asked = [] if found is None else [found, "-std=c++17", "-fsyntax-only", "-x", "c++", "-"]
    if not asked or subprocess.run(asked, input=b"#include <grpcpp/grpcpp.h>", capture_output=True).returncode:
        pytest.skip("no gRPC for C++ on this machine")
    assert native_library.library() is not None


def test_that_it_cannot_be_compiled_with_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Where it is there: else nothing is amiss."""
    broken = tmp_path / "native_server.cpp"
    broken.write_text("no C++")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(native_library, "SOURCE", broken)
    if compiler() is None:
        pytest.skip("no C++ compiler on this machine")
    assert native_library.library() is None
    assert "cannot be compiled with" in caplog.text
    caplog.clear()
    broken.write_text('#include "grpcpp/of_no_machine.h"')
    native_library.path.cache_clear()
    native_library.library.cache_clear()
    assert native_library.library() is None
    assert caplog.text == ""


def test_it_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_NATIVE", "0")
    assert native_library.library() is None


def test_a_library_that_cannot_be_loaded_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As where gRPC's has been removed since."""
    broken = tmp_path / "grpc.so"
    broken.write_bytes(b"no library")
    monkeypatch.setattr(native_library, "path", lambda: broken)
    assert native_library.library() is None
