from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from sluice.cli import app


def test_a_folder_that_holds_no_changes_is_an_error_in_one_sentence(tmp_path: Path) -> None:
    found = CliRunner().invoke(app, ["ship-catalogue", str(tmp_path), "--target", "127.0.0.1:1"])
    assert found.exit_code == 1
    assert "name the folder of a server's --fresh" in found.output
