"""`sluice verify`: figures of a good bundle, refusal of a bad one."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.bundle.bundle import read_manifest
from contracts.errors import ChecksumError
from serving.assembly.verify import verify


def test_good_bundle(bundle_folder: Path) -> None:
    found = verify(bundle_folder)
    assert found.version == read_manifest(bundle_folder).version
    assert found.parity.rows == 64
    assert found.parity.mismatches == 0
    assert found.parity.max_logit_difference <= 1e-4
    assert found.index is not None
    assert found.index.worst == 1.0
    assert (found.users, found.items) == (60, 80)


def test_figures_equal_those_published(bundle_folder: Path) -> None:
    metrics = read_manifest(bundle_folder).metrics
    found = verify(bundle_folder)
    assert metrics is not None
    assert (found.index, found.users, found.items) == (metrics.index, metrics.users, metrics.items)


def test_changed_file_is_refused(bundle_copy: Path) -> None:
    with (bundle_copy / "settings.json").open("a") as file:
        file.write(" ")
    with pytest.raises(ChecksumError, match=r"settings\.json"):
        verify(bundle_copy)
