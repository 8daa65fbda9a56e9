"""docs/reference/grpc.md against a real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contracts.bundle.bundle import MANIFEST
from serving.bundle.loaded_bundle import LoadedBundle
from sluice.demo.server_process import ServerProcess
from tests.docs_blocks import run
from tests.serving.recorded_events import recordable


@pytest.mark.slow
def test_the_client_code_of_the_page_runs(
    bundle_folder: Path, loaded: LoadedBundle, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recordable(bundle_folder, tmp_path)
    server = ServerProcess(folder, tmp_path / "server.log",
                           options=("--fresh", str(tmp_path / "fresh"), "--workers", "1"))
    try:
        run("reference/grpc.md", TARGET=server.target, USER=loaded.users.key(0))
    finally:
        assert server.stop() == 0
    assert json.loads((folder / MANIFEST).read_text())["content_hash"][:12] in capsys.readouterr().out
