"""What goes over the line to the process that forks, and what a silent end of it means."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sluice.forked import forward


@pytest.fixture
def listener(tmp_path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(tmp_path / "line"))
        one.listen()
        yield one


@pytest.mark.parametrize(("answer", "code"), [(b"\x03", 3), (b"", 1)])
def test_words_environment_and_output_go_over_and_the_code_comes_back(listener, tmp_path, answer, code):
    asked = list[dict]()

    def answered() -> None:
        line, _ = listener.accept()
        with line:
            length, outputs, _, _ = socket.recv_fds(line, forward.LENGTH, 2)
            asked.append(json.loads(line.recv(int.from_bytes(length, "big"), socket.MSG_WAITALL)))
            os.write(outputs[0], b"said by the other side")
            for output in outputs:
                os.close(output)
            line.sendall(answer)

    thread = threading.Thread(target=answered)
    thread.start()
    ended = subprocess.run(
        [sys.executable, "-S", forward.__file__, str(tmp_path / "line"), "rank", "--user", "u 1"], cwd=tmp_path,
        env={"A": "b"}, capture_output=True, text=True)
    thread.join()
    assert (ended.returncode, ended.stdout) == (code, "said by the other side")
    assert asked[0]["words"] == ["rank", "--user", "u 1"]
    assert asked[0]["environment"]["A"] == "b"
    assert Path(asked[0]["folder"]) == tmp_path
