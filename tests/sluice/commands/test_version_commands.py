"""Commands about versions: what they read from the command line. What they do is told in tests/sluice/release."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner, Result

from contracts.bundle import bundle, delta
from sluice.cli import app

MARKETPLACE = Path(__file__).parents[3] / "examples" / "marketplace.toml"


def sluice(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_a_run_without_a_bundle_is_not_registered(tmp_path: Path) -> None:
    done = sluice("register", tmp_path, "--registry", f"sqlite:///{tmp_path / 'mlflow.db'}")
    assert done.exit_code == 1
    assert "no bundle" in done.stderr


def test_a_time_that_is_none_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    done = sluice("watch", MARKETPLACE, "--answers", tmp_path, "--out", tmp_path, "--since", "yesterday")
    assert done.exit_code == 2
    assert "yesterday" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_watch_needs_its_log_of_responses() -> None:
    done = sluice("watch", MARKETPLACE)
    assert done.exit_code == 2
    assert "--answers" in done.stderr


def test_a_delta_is_applied_in_place_and_taken_back(tmp_path: Path) -> None:
    for version in ("1", "2"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "settings.json").write_text(version)
        bundle.publish(tmp_path / version, tmp_path / f"bundle{version}", "shop")
    made = delta.make(tmp_path / "bundle1", tmp_path / "bundle2", tmp_path / "delta")
    done = sluice("apply-delta", tmp_path / "bundle1", tmp_path / "delta")
    assert (done.exit_code, made.after in done.stdout) == (0, True)
    assert bundle.verify(tmp_path / "bundle1").version == made.after
    again = sluice("apply-delta", tmp_path / "bundle1", tmp_path / "delta")
    assert (again.exit_code, again.stdout) == (0, f"{tmp_path / 'bundle1'} is {made.after} already\n")
    assert sluice("apply-delta", tmp_path / "bundle1", tmp_path / "delta", "--revert").exit_code == 0
    assert bundle.verify(tmp_path / "bundle1").version == made.before
