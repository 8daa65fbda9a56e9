from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from sluice.cli import app


def test_servers_of_the_hour_end_with_it(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["demo", "--fresh", "--keep-serving", "--out", str(tmp_path)])
    assert done.exit_code == 2
    assert "leave --keep-serving out" in done.stderr
    assert not list(tmp_path.iterdir())
