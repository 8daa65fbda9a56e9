from __future__ import annotations

import os
from pathlib import Path

import pytest

from serving.workers.served_copies import served_copies


def test_each_server_has_a_place_of_its_own_beside_the_folder_which_ends_with_it(tmp_path: Path) -> None:
    with served_copies(tmp_path / "bundle") as one, served_copies(tmp_path / "bundle") as two:
        assert one is not None
        assert two is not None
        assert one != two
        assert one.is_dir()
        assert two.is_dir()
        assert one.stat().st_dev == tmp_path.stat().st_dev
    assert not list(tmp_path.iterdir())


def test_what_a_killed_server_left_is_removed_and_what_another_folders_server_has_is_not(tmp_path: Path) -> None:
    left, fresh = tmp_path / ".bundle.served.dead", tmp_path / ".bundle.served.just_begun"
    for place in (left, fresh):
        (place / "kept").mkdir(parents=True)
        (place / "lock").touch()
    os.utime(left, (0, 0))
    with served_copies(tmp_path / "other") as other, served_copies(tmp_path / "bundle"):
        assert other is not None
        assert other.is_dir()
        assert fresh.is_dir()
        assert not left.exists()


@pytest.mark.parametrize("name", ["shop[1]", "shop[", "shop]*", "what?"])
def test_a_folders_name_is_no_pattern(tmp_path: Path, name: str) -> None:
    left, another = tmp_path / f".{name}.served.dead", tmp_path / ".shop1.served.dead"
    for place in (left, another):
        place.mkdir()
        (place / "lock").touch()
        os.utime(place, (0, 0))
    with served_copies(tmp_path / name):
        assert (left.exists(), another.exists()) == (False, True)


def test_where_nothing_can_be_written_the_folder_is_served_for_good_and_that_is_said(
    caplog: pytest.LogCaptureFixture
) -> None:
    with served_copies(Path("/proc/bundle")) as none:
        assert none is None
    assert "at the next start only" in caplog.text
