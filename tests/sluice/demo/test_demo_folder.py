from __future__ import annotations

import pytest

from contracts.errors import DataError
from sluice.demo.demo_folder import clear
from sluice.out_folder import one_writer


def test_a_demo_takes_its_own_folder_again_and_no_other(tmp_path):
    mine, other = tmp_path / "new" / "demo", tmp_path / "other"
    clear(mine)
    (mine / "old").write_text("")
    clear(mine)
    assert not (mine / "old").exists()
    (mine / one_writer.FILE).write_text("")
    clear(mine)
    assert (mine / one_writer.FILE).exists()
    other.mkdir()
    (other / "thesis.doc").write_text("")
    with pytest.raises(DataError, match="no demo made it"):
        clear(other)
    assert (other / "thesis.doc").exists()
