"""Training in 1, 2 and 4 processes over a sharded table: rows a second, and the bytes of an update beside arithmetic.

    sluice bench scale [--table-rows 10000000] [--batch 4096] [--updates 60] [--rounds 3] [--json]

The comparison's shape: ten fields of width 10, 3 x 400 units, batch normalisation, dropout, float32. One process runs
on one core with one thread, two on a core each, four share two cores. In turns; medians over the rounds. The batch is
that of all processes together. Goals: two at least 1.6 times one, four within 15% of two. Bytes that leave a process:

    U (P - 1) / P (4 + 8 D) + 8 (P - 1) + 2 (P - 1) / P 4 (W + T + 4)

of U rows looked up there, D their width, W dense numbers in T tensors. Needs torch, pyarrow, numpy and pydantic alone
(python -m benchmarks.scale.scale).
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.scale import world as made
from benchmarks.scale.process import WARM, WIDTH, report

PROCESSES = {1: 1, 2: 2, 4: 2}  # on so many cores
Figures = dict[str, float]


def run(folder: Path, processes: int, table_rows: int, batch: int, updates: int) -> list[Figures]:
    """What each process says."""
    launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"] if processes > 1 else []
    command = [sys.executable, *launch, "-m", "benchmarks.scale.scale", "--folder", str(folder), "--table-rows",
               str(table_rows), "--batch", str(batch), "--updates", str(updates), "--cores", str(PROCESSES[processes])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{processes} processes: {done.stderr[-12000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def expected_bytes(processes: int, found: Figures, width: int = WIDTH) -> float:
    """By the formula of this file's head."""
    share, words = (processes - 1) / processes, found["dense_numbers"] + found["dense_tensors"] + 4
    return share * (found["rows_looked_up"] * (4 + 8 * width) + 2 * 4 * words) + 8 * (processes - 1)


def rows_for(needed: int) -> int:
    """At least as many, in equally many row groups for each process of any of PROCESSES, all of which are read: the
    rows that are shuffled at a time are as many such shares."""
    share = made.GROUP_ROWS * math.lcm(*PROCESSES)
    return -(-needed // share) * share


def measure(table_rows: int, batch: int, updates: int, rounds: int, counts: Sequence[int]) -> dict[str, Figures]:
    """Number of processes -> figures."""
    rates: dict[int, list[list[Figures]]] = {count: [] for count in counts}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "examples")
        made.write(folder, made.spec(table_rows), rows_for(batch * max(updates, WARM)))
        for _ in range(rounds):
            for count in counts:
                rates[count].append(run(folder, count, table_rows, batch, updates))
    return {str(count): figures(count, found) for count, found in rates.items()}


def figures(count: int, rounds: Sequence[Sequence[Figures]]) -> Figures:
    """Medians over the rounds of the first process; bytes and processor seconds of all."""
    first = [found[0] for found in rounds]
    sent = statistics.mean(each["bytes_an_update"] for each in rounds[-1])
    arithmetic = statistics.mean(expected_bytes(count, each) for each in rounds[-1])
    return {
        "rows_per_second": statistics.median(one["rows_per_second"] for one in first),
        "lowest": min(one["rows_per_second"] for one in first), "highest": max(one["rows_per_second"] for one in first),
        "processor_seconds": statistics.median(sum(each["processor_seconds"] for each in found) for found in rounds),
        "bytes_an_update": sent, "bytes_by_arithmetic": arithmetic, "loss": first[0]["loss"]}


def said(found: dict[str, Figures]) -> str:
    """A line each."""
    base = found.get("1")
    lines = []
    for count, one in found.items():
        rate, low, high = (f"{one[name]:,.0f}" for name in ("rows_per_second", "lowest", "highest"))
        sent, wanted = one["bytes_an_update"] / 1e6, one["bytes_by_arithmetic"] / 1e6
        lines.append(f"{count} processes {rate} rows/s ({low} to {high}), loss {one['loss']:.4f}, "
                     f"{one['processor_seconds']:.1f} CPU s, {sent:.2f} MB a process and update, {wanted:.2f} by "
                     "arithmetic")
        if base:
            lines[-1] += f", {one['rows_per_second'] / base['rows_per_second']:.2f} times one"
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table-rows", type=int, default=10_000_000)
    parser.add_argument("--batch", type=int, default=4096)
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--processes", type=int, nargs="+", choices=[*PROCESSES], default=[*PROCESSES])
    parser.add_argument("--json", action="store_true", help="the last line is JSON alone")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--cores", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args(argv)
    if asked.folder:
        report(asked.folder, asked.table_rows, asked.batch, asked.updates, asked.cores)
        return
    found = measure(asked.table_rows, asked.batch, asked.updates, asked.rounds, asked.processes)
    print(json.dumps(found) if asked.json else said(found))


if __name__ == "__main__":
    main()
