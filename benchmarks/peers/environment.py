"""A Python environment of its own for what stands beside the platform in a benchmark, and is no dependency of it."""

from __future__ import annotations

import os
import site
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from contracts.errors import SluiceError

ROOT = Path(__file__).resolve().parents[2]


def peer_python(folder: Path, modules: Sequence[str], packages: Sequence[str], on_top: bool = False) -> Path:
    """The Python of an environment below `folder` that can import `modules`, set up where one is missing.

    `on_top`: it sees the packages of this environment as well. Raises SluiceError where the packages cannot be
    installed.
    """
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    if on_top:
        _see_platform(folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages")
    if not can_import(python, modules):
        done = subprocess.run([str(python), "-m", "pip", "install", "-q", *packages], check=False, capture_output=True,
                              text=True)
        if done.returncode:
            raise SluiceError(f"{', '.join(packages)} cannot be installed into {folder}: {done.stderr.strip()[-300:]}; "
                              f"install it there, or leave {', '.join(modules)} out")
    return python


def _see_platform(packages: Path) -> None:
    """Of another checkout, where the environment was made by one that is still there."""
    told = packages / "platform.pth"
    if not told.exists() or not all(Path(line).exists() for line in told.read_text().splitlines()):
        told.write_text("\n".join(site.getsitepackages()) + "\n")


def can_import(python: Path, modules: Sequence[str]) -> bool:
    """Whether that Python is there and finds all of `modules`."""
    return python.exists() and not subprocess.run([str(python), "-c", f"import {', '.join(modules)}"], check=False,
                                                  capture_output=True).returncode


def run_module(python: Path, module: str, plan_file: Path, threads: int) -> None:
    """`module`'s `run` of a plan, in a process of its own. Raises SluiceError, with the end of what it said, where it
    fails."""
    script = f"import sys; from {module} import run; run(sys.argv[1])"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run([str(python), "-c", script, str(plan_file)], env=environment, capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise SluiceError(f"{module} failed on {plan_file}: {done.stderr.strip()[-800:]}")
