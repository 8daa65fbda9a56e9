from __future__ import annotations

import site
import sys
from pathlib import Path

import pytest

from benchmarks.peers.environment import can_import, peer_python, run_module
from contracts.errors import SluiceError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An environment whose Python is that of the tests."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    return tmp_path


def test_an_environment_that_has_the_module_is_taken_as_it_is(folder: Path) -> None:
    assert peer_python(folder, ["json"], [str(folder / "nowhere")]) == folder / "bin" / "python"


def test_what_cannot_be_installed_is_said(folder: Path) -> None:
    with pytest.raises(SluiceError, match=r"(?s)nowhere cannot be installed into .*leave json, no_such_module out"):
        peer_python(folder, ["json", "no_such_module"], [str(folder / "nowhere")])


def test_a_module_runs_its_plan_or_says_why_not(tmp_path: Path) -> None:
    with pytest.raises(SluiceError, match=r"json failed on .*plan.json: (?s:.*)cannot import name 'run'"):
        run_module(Path(sys.executable), "json", tmp_path / "plan.json", 1)


def test_only_an_environment_that_finds_all_of_them_can_import(folder: Path) -> None:
    python = folder / "bin" / "python"
    assert can_import(python, ["json", "sys"])
    assert not can_import(python, ["json", "no_such_module"])
    assert not can_import(folder / "nowhere" / "python", ["json"])


def test_an_environment_on_top_finds_the_packages_of_the_one_that_asks_though_made_by_another(folder: Path) -> None:
    own = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    own.mkdir(parents=True)
    (own / "platform.pth").write_text("/gone\n")
    peer_python(folder, ["json"], [], on_top=True)
    assert (own / "platform.pth").read_text().split() == site.getsitepackages()
    other = str(folder)  # one that is still there: its runs go on with what they began with
    (own / "platform.pth").write_text(f"{other}\n")
    peer_python(folder, ["json"], [], on_top=True)
    assert (own / "platform.pth").read_text().split() == [other]
