"""The feature step at growing sizes of the simulated marketplace: seconds, CPU seconds, peak of memory.

    sluice bench features [--config FILE] [--millions 1 2 5 10] [--out OUT] [--memory 8g]

Each size is simulated and run by `sluice features` in a process of its own; memory is the largest sum over that process
and its children (the JVM among them), sampled every half second, as is the CPU time, which other work on the machine
disturbs less than seconds. Near linear means that neither rises per million. Prints a Markdown table; the last line is
one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

from contracts.artifacts import Artifacts
from contracts.config.config import load
from contracts.errors import ConfigError
from pipelines.marketplace.marketplace import simulate
from sluice.airflow_demo.daily_config import merged, write_toml

CONFIG = Path(__file__).parents[2] / "examples" / "marketplace.toml"
MILLION, PAGE_BYTES, TICKS = 1_000_000, os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")


def measure(path: Path, millions: float, out: Artifacts, memory: str) -> dict[str, float]:
    """Raises ConfigError where the configuration simulates nothing."""
    config = load(path)
    if config.simulation is None:
        raise ConfigError(f"{path} has no [simulation] section")
    simulate(config.simulation.model_copy(update={"events": int(millions * MILLION)}), config.seed, out.raw, out.truth)
    settings = {"spark": {"settings": {"spark.driver.memory": memory}}}
    larger = write_toml(out.out / "config.toml", merged(tomllib.loads(path.read_text(encoding="utf-8")), settings))
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "sluice.cli", "features", str(larger), "--data", str(out.raw),
                                "--out", str(out.out)], stderr=subprocess.DEVNULL)
    peak, spent_by = 0, dict[int, float]()
    while process.poll() is None:
        alive = family(process.pid)
        peak = max(peak, sum(map(resident, alive)))
        spent_by |= {pid: max(spent_by.get(pid, 0.0), cpu_seconds(pid)) for pid in alive}
        time.sleep(0.5)
    spent = time.perf_counter() - started
    if process.returncode:
        raise RuntimeError(f"`sluice features` ended with {process.returncode} at {millions:g} million events")
    return {"millions": millions, "seconds": spent, "seconds per million": spent / millions,
            "CPU seconds per million": sum(spent_by.values()) / millions, "peak GiB": peak / 2**30}


def family(pid: int) -> list[int]:
    """The process and all its descendants that are still there."""
    found = [pid]
    for parent in found:
        try:
            found += map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="utf-8").split())
        except OSError:
            continue
    return found


def resident(pid: int) -> int:
    """Bytes in memory; 0 of a process that has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1]) * PAGE_BYTES
    except OSError:
        return 0


def cpu_seconds(pid: int) -> float:
    """User and system time of all its threads so far; 0 of a process that has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=Path, default=CONFIG, help="of a simulated marketplace")
    parser.add_argument("--millions", type=float, nargs="+", default=[1, 2, 5, 10])
    parser.add_argument("--out", type=Path, help="kept afterwards; none given: a folder that goes again")
    parser.add_argument("--memory", default="8g", help="of the Spark driver")
    chosen = parser.parse_args(argv)
    rows: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as scratch:
        for millions in chosen.millions:
            folder = Path(chosen.out or scratch) / f"{millions:g}"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            rows.append(measure(chosen.config, millions, Artifacts(folder), chosen.memory))
            print({name: round(value, 2) for name, value in rows[-1].items()}, flush=True)
    names = list(rows[0])
    print("| " + " | ".join(names) + " |\n|" + "---|" * len(names))
    for row in rows:
        print("| " + " | ".join(f"{row[name]:.4g}" for name in names) + " |")
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
