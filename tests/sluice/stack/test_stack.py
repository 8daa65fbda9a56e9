"""What `make stack` starts, and what it says where it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from sluice.stack.processes import Processes
from sluice.stack.stack import Ports, Stack, free_ports, main


def test_without_a_bundle_it_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none"), "--check"]) == 1
    assert "make demo" in capsys.readouterr().err


def test_ports_are_six_of_their_own() -> None:
    found = free_ports()
    assert len(set(vars(found).values())) == len(vars(Ports()))


def test_everything_that_answers_people_is_named(tmp_path: Path) -> None:
    said = "\n".join(Stack(tmp_path, tmp_path, Ports(), Processes(tmp_path)).addresses())
    assert {str(port) for port in (50051, 8080, 9464, 5000)} <= {word.rstrip("/").rpartition(":")[2]
                                                                  for word in said.split()}
