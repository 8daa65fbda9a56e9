from __future__ import annotations

import subprocess
import sys

from typer.testing import CliRunner

from sluice.cli import app


def test_the_package_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "sluice", "--version"], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout == CliRunner().invoke(app, ["--version"]).stdout
