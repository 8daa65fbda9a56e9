"""Commands from a process that has imported things: output, exit codes, environment, folder, and how they end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.errors import SluiceError
from sluice.forked.warm_process import WarmProcess
from tests.serving.read_log import until


@pytest.fixture(scope="module")
def warm(tmp_path_factory) -> Iterator[WarmProcess]:
    with WarmProcess(tmp_path_factory.mktemp("warm"), ["sluice.commands.run_commands"]) as process:
        yield process


@pytest.fixture
def waiting(warm) -> Iterator[subprocess.Popen[str]]:
    """A command that waits for a server which never answers."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        words = ["rank", "--user", "u1", "--timeout", "60", "--target", f"127.0.0.1:{mute.getsockname()[1]}"]
        process = subprocess.Popen([warm.command, *words], stderr=subprocess.PIPE, text=True)
        with mute.accept()[0]:
            yield process
            process.kill()
            process.communicate()


def forked(warm: WarmProcess) -> list[int]:
    """Process ids of the commands under way."""
    number = warm.process.pid
    return [int(word) for word in Path(f"/proc/{number}/task/{number}/children").read_text().split()]


def test_a_command_says_what_it_says_alone(warm):
    environment = os.environ | {"COLUMNS": "70"}
    here, alone = (
        subprocess.run([*command, "features", "--help"], capture_output=True, text=True, env=environment, check=True)
        for command in ([str(warm.command)], [sys.executable, "-m", "sluice.cli"]))
    assert here.stdout == alone.stdout
    assert 60 < max(map(len, here.stdout.splitlines())) <= 70


def test_a_command_runs_in_the_callers_folder_and_ends_with_its_own_code(warm, tmp_path):
    (tmp_path / "shop.toml").write_text("name = [")
    ended = subprocess.run([warm.command, "features", "shop.toml"], cwd=tmp_path, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "sluice: " in ended.stderr
    assert "No such file" not in ended.stderr


@pytest.mark.parametrize(("told", "found"), [(None, "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_openmp_is_told_to_sleep_before_libraries_load(monkeypatch, tmp_path, told, found):
    monkeypatch.setenv("OMP_WAIT_POLICY", told or "")
    if told is None:
        monkeypatch.delenv("OMP_WAIT_POLICY")
    with WarmProcess(tmp_path, []) as process:
        environment = Path(f"/proc/{process.process.pid}/environ").read_bytes().split(b"\0")
    assert f"OMP_WAIT_POLICY={found}".encode() in environment


def test_a_command_ends_with_its_caller(warm, waiting):
    assert forked(warm)
    waiting.send_signal(signal.SIGKILL)
    until(lambda: not forked(warm))


def test_a_command_that_dies_has_failed(warm, waiting):
    for number in forked(warm):
        os.kill(number, signal.SIGKILL)
    assert waiting.wait(30) == 1


def test_what_cannot_be_imported_is_in_the_log(tmp_path):
    with pytest.raises(SluiceError, match="did not come up"), WarmProcess(tmp_path, ["no_such_module"]):
        pass
    assert "no_such_module" in (tmp_path / "warm.log").read_text()
