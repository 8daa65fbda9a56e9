"""A small bundle that was really trained."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sluice.market_run import market_run


@pytest.fixture(scope="module")
def bundle_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return market_run(tmp_path_factory.mktemp("market")).bundle
