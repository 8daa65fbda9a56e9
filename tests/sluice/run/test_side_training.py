"""Every model of a run is made once: here or beside."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from contracts.artifacts import Artifacts
from contracts.errors import OneClassError
from sluice.run import side_training
from sluice.run.side_training import train_in_two

NAMES = ["popularity", "dnn", "din", "two_tower"]


class BusyLane:
    """Begins the first piece that it is given and ends it with `error`, or well."""

    def __init__(self, error: Exception | None = None) -> None:
        self.given: list[str] = []
        self.error = error

    def submit(self, function: Any, *arguments: Any) -> Future[None]:
        piece: Future[None] = Future()
        if not self.given:
            piece.set_running_or_notify_cancel()
            if self.error is None:
                piece.set_result(None)
            else:
                piece.set_exception(self.error)
        self.given += arguments[2]
        return piece


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is made in this process."""
    found: list[str] = []
    monkeypatch.setattr(side_training, "names_ahead", lambda config, out: NAMES)
    monkeypatch.setattr(side_training, "make_ahead", lambda config, out, names, *rest: found.extend(names))
    return found


def test_what_the_lane_has_not_begun_is_made_here_in_order(made, tmp_path) -> None:
    lane: Any = BusyLane()
    train_in_two(lane, None, Artifacts(tmp_path), 3, None, lambda what, done, total: None)  # type: ignore[arg-type]
    assert lane.given == NAMES
    assert made == NAMES[1:]


def test_what_comes_after_the_models_is_given_to_the_lane_before_any_is_made_here(made, tmp_path) -> None:
    lane: Any = BusyLane()
    seen: list[tuple[list[str], list[str]]] = []
    train_in_two(lane, None, Artifacts(tmp_path), 3, None, lambda what, done, total: None,  # type: ignore[arg-type]
                 lambda: seen.append(([*lane.given], [*made])))
    assert seen == [(NAMES, [])]


def test_what_fails_beside_fails_here(made, tmp_path) -> None:
    lane: Any = BusyLane(OneClassError("one class"))
    with pytest.raises(OneClassError, match="one class"):
        train_in_two(lane, None, Artifacts(tmp_path), 3, None, lambda what, done, total: None)  # type: ignore[arg-type]
