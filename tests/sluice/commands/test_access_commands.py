"""The lines that `sluice token` prints let the token's bearer in."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from serving.access.gate import Gate
from sluice.cli import app


def test_a_token_is_made_for_a_caller_and_printed_for_nobody(tmp_path: Path) -> None:
    made = CliRunner().invoke(app, ["token", "shop", "--file", str(tmp_path / "token"), "--expires", "2100-01-01"])
    assert made.exit_code == 0
    secret = (tmp_path / "token").read_text().strip()
    assert secret not in made.stdout
    (tmp_path / "access.toml").write_text(made.stdout)
    caller = Gate(tmp_path / "access.toml").caller([("authorization", f"Bearer {secret}")])
    assert (caller.name, [*caller.roles]) == ("shop", ["ranking"])


def test_a_role_that_there_is_not_leaves_no_file(tmp_path: Path) -> None:
    made = CliRunner().invoke(app, ["token", "shop", "--file", str(tmp_path / "token"), "--role", "king"])
    assert made.exit_code == 2
    assert not (tmp_path / "token").exists()
