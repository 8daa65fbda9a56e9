"""The archive of a run is unpacked once on a node, and sent once within it."""

from __future__ import annotations

import hashlib
import inspect
import shutil

import pytest
from flwr.cli.build import build_fab_from_disk
from flwr.supercore.fab import Fab
from flwr.supernode.runtime import run_clientapp
from flwr.supernode.servicer.runtime import runtime_handlers

from federated.flower.archives import KNOWN, sent_once, unpacked

PROJECT = """
[project]
name = "small"
version = "1.0.0"
license = "Apache-2.0"
[tool.flwr.app]
publisher = "nobody"
fab-include = ["small/**/*.py"]
[tool.flwr.app.components]
serverapp = "small.server:app"
clientapp = "small.client:app"
"""


@pytest.mark.filterwarnings("ignore:GitWildMatchPattern")
def test_an_archive_is_unpacked_and_sent_once_and_anew_where_it_was_deleted(tmp_path, monkeypatch):
    monkeypatch.setenv("FLWR_HOME", str(tmp_path / "home"))
    app = tmp_path / "app"
    (app / "small").mkdir(parents=True)
    (app / "small" / "client.py").write_text("app = 1\n")
    (app / "pyproject.toml").write_text(PROJECT)
    archive = build_fab_from_disk(app)
    there = unpacked(archive)
    assert there is not None
    changed = there / "small" / "client.py"
    changed.write_text("app = 2\n")
    assert unpacked(archive) == there
    assert changed.read_text() == "app = 2\n"
    fab = Fab(hashlib.sha256(archive).hexdigest(), archive, {"license": "yes"})
    assert sent_once(fab).content == KNOWN
    assert (sent_once(fab).hash_str, dict(sent_once(fab).verifications)) == (fab.hash_str, fab.verifications)
    assert unpacked(KNOWN) is None
    shutil.rmtree(there)
    assert sent_once(fab).content == archive
    assert unpacked(archive) == there
    assert changed.read_text() == "app = 1\n"


def test_flower_sends_and_takes_it_by_the_names_that_are_replaced_and_looks_for_code_by_its_hash():
    assert inspect.getsource(runtime_handlers).count("fab_to_proto(fab)") == 1
    source = inspect.getsource(run_clientapp)
    assert source.count("fab.content") == 1
    assert "get_project_dir(run.fab_id, run.fab_version, fab.hash_str)" in source
