"""The folder is empty at first, and gone afterwards, also where the work in it fails."""

from __future__ import annotations

import pytest

from sluice.run.emptied_folder import emptied


def test_what_was_left_is_gone_and_what_is_made_goes_too(tmp_path):
    place = tmp_path / "deep" / ".build"
    (place / "old").mkdir(parents=True)
    with emptied(place) as folder:
        assert list(folder.iterdir()) == []
        (folder / "new").write_text("x")
    assert not place.exists()
    with pytest.raises(ValueError, match="broken"), emptied(place):
        raise ValueError("broken")
    assert not place.exists()
