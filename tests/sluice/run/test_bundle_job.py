"""The job `sluice bundle`: parts of a trained run become one published folder, wherever they lie."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from contracts.artifacts import Artifacts
from contracts.bundle import bundle
from contracts.errors import DataError
from sluice.run.bundle_job import BUNDLE_JOB, build_bundle
from tests.serving.conftest import make_config, make_market, write_outputs

CONFIG = make_config()


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    out = Artifacts(tmp_path_factory.mktemp("parts"))
    write_outputs(make_market(CONFIG), out)
    return out


def quiet() -> Console:
    return Console(file=io.StringIO())


@pytest.mark.slow
def test_what_is_published_is_what_the_summary_says(parts: Artifacts) -> None:
    console = quiet()
    made = build_bundle(CONFIG, parts, console)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert (lines[0], lines[1], lines[-2]) == ("bundle ...", "  bundle: encoding", "  bundle: tracked")
    manifest = bundle.verify(parts.bundle)
    assert (made.version, made.files) == (manifest.version, len(manifest.files))
    assert made.parity.mismatches == 0
    assert made.bytes == sum(path.stat().st_size for path in parts.bundle.rglob("*") if path.is_file())
    assert (parts.out / BUNDLE_JOB / "summary.json").exists()
    assert not (parts.out / ".build").exists()


@pytest.mark.slow
def test_the_same_parts_make_the_same_version_in_another_folder(parts: Artifacts, tmp_path: Path) -> None:
    here = build_bundle(CONFIG, parts, quiet())
    there = build_bundle(CONFIG, parts, quiet(), Artifacts(tmp_path))
    assert there.version == here.version
    assert (tmp_path / "bundle" / bundle.MANIFEST).exists()


def test_without_training_it_says_what_to_run_first(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="run `sluice train`"):
        build_bundle(CONFIG, Artifacts(tmp_path), quiet())
