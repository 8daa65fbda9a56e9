"""A written log of thirty users, and its configuration with few rounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.federated import small_world


@pytest.fixture
def log(tmp_path: Path) -> tuple[Path, Path]:
    """(configuration file, folder with its encoded examples)."""
    out = small_world.write(tmp_path / "out")
    path = tmp_path / "small.toml"
    path.write_text(small_world.TEXT.replace("rounds = 3", "rounds = 2") + "retrieval = false\n", encoding="utf-8")
    return path, out.out
