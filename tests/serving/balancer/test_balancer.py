"""The process beside the supervisor: its start, its death, its end, and what it hears and says meanwhile."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from contracts.errors import ConfigError, SluiceError
from serving.balancer.balancer import Balancer, program
from serving.balancer.configuration import BalancerPlan
from tests.serving.balancer.running_balancer import balanced, needs_haproxy

SECONDS = 1.0  # that a call without a deadline may take


@needs_haproxy
def test_a_slower_pace_lets_fewer_in() -> None:
    async def drive() -> None:
        async with balanced(pace=0.01) as before:
            await before.begin(3, 7200.0)
            await before.begin(1, 5.0)
            assert before.held == 4
            before.balancer.tend(0.05, SECONDS)
            assert await before.rank(0.2) == "RESOURCE_EXHAUSTED"
            before.balancer.tend(0.0, SECONDS)  # nobody has told it
            assert await before.rank(0.2) == "RESOURCE_EXHAUSTED"
            before.balancer.tend(0.01, SECONDS)
            assert await before.rank(0.2) == "DEADLINE_EXCEEDED"  # held

    asyncio.run(drive())


@needs_haproxy
def test_a_call_without_a_deadline_has_the_one_that_workers_give_it() -> None:
    async def drive() -> None:
        async with balanced(pace=0.01, deadline=0.1) as before:
            await before.begin(6)
            assert await before.rank() == "RESOURCE_EXHAUSTED"
            before.balancer.tend(0.01, 0.0)  # nobody has told it
            assert await before.rank() == "RESOURCE_EXHAUSTED"
            before.balancer.tend(0.01, 0.2)
            await before.begin(5)
            assert before.held == 11
            assert await before.rank() == "RESOURCE_EXHAUSTED"

    asyncio.run(drive())


@needs_haproxy
def test_what_it_has_refused_is_said(caplog: pytest.LogCaptureFixture) -> None:
    async def drive() -> None:
        async with balanced(pace=1.0) as before:
            await before.begin(1, 7200.0)
            assert [await before.rank(0.5) for _ in range(3)] == 3 * ["RESOURCE_EXHAUSTED"]
            with caplog.at_level(logging.WARNING, "sluice.serving"):
                before.balancer.tend(1.0, SECONDS)
            assert "the balancer has refused 3 calls" in caplog.text

    asyncio.run(drive())


@needs_haproxy
@pytest.mark.parametrize("cleaned", [False, True])
def test_one_that_is_killed_is_followed_by_another_also_where_its_folder_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cleaned: bool
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    async def drive() -> None:
        async with balanced(pace=0.01) as before:
            before.release.set()
            first = before.balancer.pid
            if cleaned:
                shutil.rmtree(next(tmp_path.iterdir()))
            os.kill(first, signal.SIGKILL)
            end = time.monotonic() + 20
            while before.balancer.pid == first and time.monotonic() < end:
                await asyncio.sleep(0.01)
                before.balancer.tend(0.01, SECONDS)
            while (said := await before.rank(20.0)) != "OK" and time.monotonic() < end:
                await asyncio.sleep(0.05)
            assert said == "OK"

    asyncio.run(drive())


@needs_haproxy
def test_a_port_that_is_taken_is_refused_in_haproxys_words_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SluiceError, match=rf"does not listen on 127\.0\.0\.1:{port}.*{port}"):
            Balancer(BalancerPlan("127.0.0.1", port, 1, 1), 0.01, 1.0)
    assert list(tmp_path.iterdir()) == []


def test_without_haproxy_or_with_an_old_one_the_cure_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(ConfigError, match="which is not there; install it"):
        program()
    found = tmp_path / "haproxy"
    monkeypatch.setattr(shutil, "which", lambda *_, **__: str(found))
    for said, what in (("HAProxy version 1.8.30 2021/04/12", r"is version 1\.8"), ("?", ".*/haproxy is not")):
        found.write_text(f"#!/bin/sh\necho '{said}'\n")
        found.chmod(0o700)
        with pytest.raises(ConfigError, match=f"which {what}.*; install it"):
            program()


MADE = """
import logging
from serving.balancer.balancer import Balancer
from serving.balancer.configuration import BalancerPlan
from serving.server.port_takeover import reserved
logging.basicConfig()
with reserved("127.0.0.1", 0) as port:
    Balancer(BalancerPlan("127.0.0.1", port, 1, 1), 0.01, 1.0).close()
"""


@needs_haproxy
@pytest.mark.parametrize(("files", "said"), [(256, True), (8192, False)])
def test_a_low_limit_of_open_files_is_said_at_the_start(files: int, said: bool) -> None:
    command = ["bash", "-c", f'ulimit -n {files} && exec "$0" -c "$1"', sys.executable, MADE]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ("raise it where more callers come" in done.stderr) == said
