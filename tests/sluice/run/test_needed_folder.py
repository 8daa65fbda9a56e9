from __future__ import annotations

import pytest

from contracts.errors import DataError
from sluice.run.needed_folder import need


def test_a_folder_that_is_there_passes_and_a_missing_one_names_the_command(tmp_path):
    need(tmp_path, "sluice features")
    with pytest.raises(DataError, match="run `sluice features` with the same --out first"):
        need(tmp_path / "encoding", "sluice features")
