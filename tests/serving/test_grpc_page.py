"""docs/reference/grpc.md against a real server."""

from __future__ import annotations

from pathlib import Path

import pytest

from serving.bundle.loaded_bundle import LoadedBundle
from sluice.demo.server_process import ServerProcess
from tests.docs_blocks import run


def test_the_client_code_of_the_page_runs(
    bundle_folder: Path, loaded: LoadedBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ServerProcess(bundle_folder, tmp_path / "server.log")
    try:
        run("reference/grpc.md", TARGET=server.target, USER=loaded.users.key(0))
    finally:
        assert server.stop() == 0
    assert loaded.manifest.version in capsys.readouterr().out
