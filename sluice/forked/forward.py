"""Hands a `sluice` command to a WarmProcess: words, environment, folder and output go there, its exit code comes back.

    python forward.py SOCKET WORDS...     alone, of the standard library: what it imports is what starting costs

Exit code 1 where the command dies without one. It ends with this process.
"""

from __future__ import annotations

import json
import os
import socket
import sys

LENGTH = 8  # bytes that say how many follow


def forward(address: str, words: list[str]) -> int:
    """The command's exit code."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(address)
        asked = json.dumps({"words": words, "environment": dict(os.environ), "folder": os.getcwd()}).encode()
        socket.send_fds(line, [len(asked).to_bytes(LENGTH, "big")], [1, 2])
        line.sendall(asked)
        code = line.recv(1)
    return code[0] if code else 1


if __name__ == "__main__":
    sys.exit(forward(sys.argv[1], sys.argv[2:]))
