"""C++ that is compiled once a machine: a shared library under `~/.cache/sluice` (or XDG_CACHE_HOME), by the digest of
sources, compiler, flags and processor."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from contracts.atomic_write import aside

LONGEST = 120  # seconds that a compiler may take
_COMPILING = threading.Lock()


def compiler() -> str | None:
    """Where the machine's is, None without one."""
    return shutil.which(os.environ.get("CXX", "g++"))


def compiled(
    name: str, program: str, sources: Sequence[Path], flags: Sequence[str], headers: Sequence[Path] = (),
    libraries: Sequence[str] = (),
) -> Path:
    """The library. Raises OSError and subprocess.SubprocessError where it cannot be made."""
    processor = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    model = next((line for line in processor.splitlines() if line.startswith("flags")), platform.processor())
    texts = (source.read_text(encoding="utf-8") for source in (*sources, *headers))
    parts = (*texts, program, *flags, *libraries, platform.machine(), model)
    digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:24]
    path = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sluice" / f"{name}-{digest}.so"
    with _COMPILING:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            with aside(path) as draft:
                subprocess.run([program, *flags, *map(str, sources), "-o", str(draft), *libraries], check=True,
                               capture_output=True, timeout=LONGEST)
    return path
