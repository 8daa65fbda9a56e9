from __future__ import annotations

import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sluice.cli import app


@pytest.mark.parametrize(("options", "said"), [
    (["--tls-ca", "nowhere.pem"], "nowhere.pem cannot be read"),
    (["--tls-certificate", "one.pem"], "go together"),
    (["--host", "0.0.0.0"], "LISTENING ON 0.0.0.0 WITHOUT TLS"),
    (["--target", "ranking.example.com:50051"], "ASKING ranking.example.com:50051 WITHOUT TLS"),
])
def test_what_is_wrong_or_open_is_said(options: list[str], said: str, tmp_path: Path) -> None:
    """Of a port that is taken, so that none of them listens."""
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        done = CliRunner().invoke(app, ["gateway", "--port", str(taken.getsockname()[1]), *options])
    assert done.exit_code in (1, 2)
    assert said in done.output + str(done.exception)
