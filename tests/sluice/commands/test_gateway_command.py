from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from contracts.errors import ConfigError
from sluice.cli import app


def test_certificates_that_are_not_there_are_said(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["gateway", "--root-certificates", str(tmp_path / "ca.pem")])
    assert isinstance(done.exception, ConfigError) or done.exit_code == ConfigError.exit_code
