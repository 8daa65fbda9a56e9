"""What the comparison says of known figures; the servers themselves are its own business."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from benchmarks.serving.score_callers import CallerFigures
from benchmarks.serving.score_peers import free_port, listening, main, measure, running, summary
from contracts.errors import SluiceError
from tests.benchmarks.printed_figures import last_line, refuses


def figures(callers: int, per_second: float, milliseconds: float) -> CallerFigures:
    return CallerFigures(callers=callers, per_second=per_second, p50_ms=milliseconds, p99_ms=2 * milliseconds, failed=1)


def test_ratios_are_of_medians_and_ours_over_theirs() -> None:
    ours = {1: [figures(1, 1, 3.0), figures(1, 1, 90.0), figures(1, 1, 3.0)], 4: [figures(4, 600, 5.0)] * 3}
    theirs = {1: [figures(1, 1, 6.0)] * 3, 4: [figures(4, 300, 20.0)] * 3}
    found = summary({"grpc": ours, "other": theirs})["other"]
    assert (found["our_throughput_over_theirs"], found["our_p50_over_theirs"], found["our_p99_over_theirs"]) == (
        2.0, 0.5, 0.25)
    assert found["failed"] == 6


@pytest.mark.slow
def test_a_peer_that_answers_nothing_is_left_out_and_ours_is_not() -> None:
    nobody, missing = f"127.0.0.1:{free_port()}", dict[str, str]()
    assert measure({"fastapi": nobody}, 1, 0.1, 300, "wire", missing) == {}
    assert missing["fastapi"].startswith("fastapi answered none of")
    with pytest.raises(SluiceError, match="grpc answered none"):
        measure({"grpc": nobody}, 1, 0.1, 300, "wire", missing)


def test_a_port_that_nobody_has() -> None:
    port = free_port()
    assert not listening(f"127.0.0.1:{port}")
    with socket.create_server(("127.0.0.1", port)):
        assert listening(f"127.0.0.1:{port}")


def test_a_peer_that_does_not_start_is_named_with_its_last_words(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no such library\nexit 1\n")
    python.chmod(0o755)
    with pytest.raises(SluiceError, match="fastapi did not start: no such library"), running(
            python, "fastapi", tmp_path, tmp_path / "log"):
        pass


def test_a_peer_finds_the_programs_of_its_own_environment(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nPATH=$PATH:/bin:/usr/bin\nmy-server\nexit 1\n")
    (tmp_path / "my-server").write_text("#!/bin/sh\necho found, and ended\n")
    for program in tmp_path.iterdir():
        program.chmod(0o755)
    with pytest.raises(SluiceError, match="mlflow did not start: found, and ended"), running(
            python, "mlflow", tmp_path, tmp_path / "log"):
        pass


def test_wrong_options_are_refused() -> None:
    assert refuses(main, "--peers", "oracle")


@pytest.mark.slow
def test_our_own_server_alone(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--items", "2000", "--peers", "--rounds", "1", "--seconds", "0.5", "--json"])
    found = last_line(capsys.readouterr().out)
    assert found["score_peers"]["grpc"]["failed"] == 0
    assert found["missing"] == {}
