from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.errors import DataError, SchemaError
from contracts.features.feature_spec import FeatureSpec
from models.examples.example_files import ExampleFiles


def test_columns_come_in_file_order_and_lists_as_matrices(
    tmp_path: Path, spec: FeatureSpec, columns: Any, write: Any
) -> None:
    drawn = columns(spec, 50, 3)
    files = ExampleFiles(write(tmp_path, drawn))
    assert files.rows == 50
    assert sum(group.rows for group in files.groups) == 50
    np.testing.assert_array_equal(files.column("_row"), np.arange(50))
    assert files.column("tags").shape == (50, 3)


def test_what_is_not_there_is_said(tmp_path: Path, spec: FeatureSpec, columns: Any, write: Any) -> None:
    with pytest.raises(DataError, match="holds no examples"):
        ExampleFiles(tmp_path / "nothing")
    with pytest.raises(SchemaError, match="no column 'nobody'"):
        ExampleFiles(write(tmp_path, columns(spec, 50, 3))).column("nobody")


def test_neither_the_files_nor_the_leak_check_load_torch() -> None:
    found = "import sys, models.leakage.leak_check; raise SystemExit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", found], check=False).returncode == 0
