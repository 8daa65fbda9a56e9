"""A second generator as witness of the first: h2load (https://nghttp2.org; Debian's `nghttp2-client`), which is neither
ours nor Python.

It knows HTTP/2 and nothing of gRPC: it sends one framed request, of one user, again and again at an even pace, times it
from when it was sent, and takes a refusal for an answer. So it bears witness below capacity alone, and its tail is that
of even arrivals. On one connection: the paces of several begin together, and their requests come in bursts.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from pydantic import BaseModel, ConfigDict

from benchmarks.wire.wire_caller import framed
from serving.access.role import RANKING_SERVICE
from serving.proto import sluice_pb2 as pb

STREAMS = 128  # calls under way
OK = 200


class WitnessFigures(BaseModel):
    """Milliseconds from when a request was sent; `failed` ended without HTTP's 200."""

    model_config = ConfigDict(frozen=True)

    requests: int
    failed: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


def witness(target: str, request: pb.RankRequest, rate: float, seconds: float) -> WitnessFigures | None:
    """None where h2load is not installed."""
    program = shutil.which("h2load")
    if program is None:
        return None
    with tempfile.TemporaryDirectory() as place:
        body, log = Path(place) / "body", Path(place) / "log"
        body.write_bytes(framed(request.SerializeToString()))
        subprocess.run(
            [program, "-c", "1", "-t", "1", "-m", str(STREAMS), "-D", str(max(round(seconds), 1)),
             "--rps", str(max(round(rate), 1)), "-d", str(body), "-H", "content-type: application/grpc",
             "-H", "te: trailers", "-H", "grpc-timeout: 1S", "--log-file", str(log), f"http://{target}/{RANKING_SERVICE}/Rank"],
            capture_output=True, text=True, check=True)
        return figures(log.read_text())


def figures(log: str) -> WitnessFigures:
    """Of h2load's lines: begin, status, microseconds."""
    rows = [(int(status), int(spent)) for _, status, spent in (line.split() for line in log.splitlines())]
    spent = np.array([each / 1000 for status, each in rows if status == OK] or [float("nan")])
    p50, p95, p99 = np.percentile(spent, (50, 95, 99))
    return WitnessFigures(requests=len(rows), failed=sum(status != OK for status, _ in rows), p50_ms=float(p50),
                          p95_ms=float(p95), p99_ms=float(p99))
