from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from contracts.config.stages import Serve
from contracts.errors import DataError
from serving.events.event_room import EventRoom
from tests.serving.recorded_events import recorded_features


def test_a_room_with_a_folder_reads_users_and_leaves_a_log(tmp_path: Path) -> None:
    room = EventRoom(tmp_path / "fresh", recorded_features(), Serve())
    assert room.users is not None
    assert asyncio.run(room.users.read("u")).recent == ()
    room.close()
    assert (tmp_path / "fresh" / "log").is_dir()


def test_without_a_folder_or_a_log_that_can_be_recorded_there_is_nothing(tmp_path: Path) -> None:
    for room in (EventRoom(None, recorded_features(), Serve()), EventRoom(tmp_path / "fresh", None, Serve())):
        assert room.users is None
        room.close()
    assert not (tmp_path / "fresh").exists()


def test_a_folder_that_cannot_be_used_is_told_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "fresh").write_text("in the way")
    with pytest.raises(DataError, match="give a folder"):
        EventRoom(tmp_path / "fresh", recorded_features(), Serve())
