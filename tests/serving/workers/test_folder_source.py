from __future__ import annotations

from pathlib import Path

import pytest

from contracts.bundle.bundle import read_manifest
from contracts.errors import BundleError
from serving.workers.folder_source import FolderSource


def test_it_names_the_bundle_that_lies_there(bundle_folder: Path) -> None:
    source = FolderSource(bundle_folder)
    assert source.latest() == read_manifest(bundle_folder).version
    assert source.fetch(source.latest()) == bundle_folder


def test_no_bundle_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(BundleError):
        FolderSource(tmp_path)
