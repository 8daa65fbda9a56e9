"""What `sluice bench gpu` found, as a section of benchmarks/RESULTS.md."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from benchmarks.scale.device_parts import Figures

# Beside a million look-ups of width 128 on an H100: what fused kernels take there (published), and our goals.
BESIDE = {
    ("look_ups", "forward_ms"): "published, H100, a million x 128: 0.35",
    ("look_ups", "update_ms"): "published, H100, backwards with update: 1.0",
    ("pre_rank_compiled", "p90_ms"): "goal at 100 thousand: 20",
}


def section(found: Mapping[str, Figures]) -> str:
    """Markdown; a part that failed says so in its row."""
    about = found["device"]
    where = f"{about['name']} ({about['kind']})"
    lines = [
        "", f"## {about['date']}, `sluice bench gpu` on {where}, commit {about['commit']}", "",
        f"torch {about['torch']}, {about['threads']} threads, sizes {about['sizes']}. "
        + ("" if about["kind"] == "cuda" else "No GPU was at hand: small sizes, to see that every part runs."), "",
        "| part | figure | value | beside |", "|---|---|---|---|"]
    for part, figures in found.items():
        for name, value in figures.items():
            if part != "device":
                lines.append(f"| {part} | {name} | {_shown(value)} | {BESIDE.get((part, name), '')} |")
    return "\n".join(lines) + "\n"


def _shown(value: float | str | None) -> str:
    if not isinstance(value, float):
        return " ".join(str(value).split()).replace("|", "/")
    return f"{value:,.3g}" if value < 1000 else f"{value:.3e}" if value >= 1e7 else f"{value:,.0f}"


def commit() -> str:
    """Of this tree; "unknown" where it is no checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
