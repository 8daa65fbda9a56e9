from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import ConfigError
from contracts.summaries.summary import Record
from models.distributed.kept_parts import KeptParts
from models.distributed.run_checkpoint import Kept, RunCheckpoint, State
from models.distributed.world import ALONE

RUN = {"seed": "1"}


class Figures(Record):
    auc: float


def parts(folder: Path, resume: bool = True, run: dict[str, str] = RUN) -> KeptParts:
    return KeptParts(folder / "kept", 60.0, run, resume)


def never(_: RunCheckpoint | None) -> Figures:
    raise AssertionError("made again")


def half(kept: RunCheckpoint | None) -> Figures:
    """Stopped in the middle of its training."""
    assert kept is not None
    kept.write(Kept(), State({}, {}), ALONE)
    raise InterruptedError


def test_what_is_finished_is_made_once(tmp_path: Path) -> None:
    made = parts(tmp_path).once("network", Figures, lambda _: Figures(auc=0.1 + 0.2))
    assert parts(tmp_path).once("network", Figures, never) == made
    assert parts(tmp_path).once("trees", Figures | None, lambda _: None) is None
    assert parts(tmp_path).once("trees", Figures | None, never) is None
    assert parts(tmp_path).once("sets", dict[str, Figures], lambda _: {"a": made}) == {"a": made}
    assert parts(tmp_path).once("sets", dict[str, Figures], never) == {"a": made}


def test_what_was_stopped_goes_on_from_its_own_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(InterruptedError):
        parts(tmp_path).once("network", Figures, half)
    taken: list[bool] = []

    def rest(kept: RunCheckpoint | None) -> Figures:
        assert kept is not None
        taken.append(kept.latest(Kept) is not None)
        return Figures(auc=0.5)

    parts(tmp_path).once("other", Figures, rest)
    parts(tmp_path).once("network", Figures, rest)
    assert taken == [False, True]
    assert not [*tmp_path.rglob("0*")], "the checkpoints of a finished part stay"


def test_without_resume_all_begins_anew(tmp_path: Path) -> None:
    parts(tmp_path).once("network", Figures, lambda _: Figures(auc=0.5))
    assert parts(tmp_path, resume=False).once("network", Figures, lambda _: Figures(auc=0.6)).auc == 0.6


def test_figures_of_another_run_or_version_are_made_again_and_its_checkpoint_is_refused(tmp_path: Path) -> None:
    parts(tmp_path).once("network", Figures, lambda _: Figures(auc=0.5))
    assert parts(tmp_path, run={"seed": "2"}).once("network", Figures, lambda _: Figures(auc=0.6)).auc == 0.6
    (tmp_path / "kept" / "network.json").write_text("{", encoding="utf-8")
    assert parts(tmp_path).once("network", Figures, lambda _: Figures(auc=0.7)).auc == 0.7
    with pytest.raises(InterruptedError):
        parts(tmp_path).once("half", Figures, half)
    with pytest.raises(ConfigError, match=r"seed \(1 there, 2 now\)"):
        parts(tmp_path, run={"seed": "2"}).once("half", Figures, lambda kept: kept.latest(Kept))  # type: ignore[union-attr]


def test_where_nothing_is_to_be_kept_nothing_is(tmp_path: Path) -> None:
    made = KeptParts(None).once("network", bool, lambda kept: kept is None)
    assert made
    KeptParts(None).clear()
    assert not [*tmp_path.iterdir()]
