"""Who makes the features in `sluice bench features`: the platform on either engine, and a script for DuckDB.

The script runs in a Python environment of its own, which is set up here once: DuckDB is no dependency of the platform.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.peers.environment import peer_python
from contracts.config.config import Config
from contracts.config.fields import FieldConfig
from contracts.errors import ConfigError

DUCKDB = "duckdb>=1.4,<3"
ROOT = Path(__file__).resolve().parents[2]
ENGINES = ("embedded", "duckdb", "spark_local")
MASTERS = {"embedded": "embedded", "spark_local": "local[*]"}
DAY_SECONDS = 86_400
_JOB = """import sys
from pathlib import Path
from contracts.artifacts import Artifacts
from contracts.config.config import load
from pipelines.jobs.feature_job import make_features
make_features(load(Path(sys.argv[1])), Path(sys.argv[2]), Artifacts(Path(sys.argv[3])))
"""
_SCRIPT = "import sys; from benchmarks.pipelines.duckdb_features import run; run(sys.argv[1])"


def command(
    engine: str, config: Path, raw: Path, out: Path, scratch: Path, memory: str, peer: Path | None,
) -> list[str]:
    """What to start: the job alone, without the leak check that `sluice features` runs after it."""
    if engine == "duckdb":
        from contracts.config.config import load

        plan = scratch / "plan.json"
        settings = plan_of(load(config), raw, out, scratch, os.cpu_count() or 1, memory.upper() + "B")
        plan.write_text(json.dumps(settings), encoding="utf-8")
        return [str(peer or sys.executable), "-c", _SCRIPT, str(plan)]
    return [sys.executable, "-c", _JOB, str(config), str(raw), str(out)]


def environment(engine: str, scratch: Path) -> dict[str, str]:
    """Temporary files go below `scratch`, where they can be counted."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(scratch), "SPARK_LOCAL_DIRS": str(scratch),
            "SLUICE_SPARK_MASTER": MASTERS.get(engine, "")}


def duckdb_python(folder: Path) -> Path:
    """The Python of an environment with DuckDB below `folder`. Raises SluiceError where it cannot be installed."""
    return peer_python(folder, ["duckdb"], [DUCKDB])


def plan_of(
    config: Config, raw: Path, out: Path, temporary: Path, threads: int, memory: str,
) -> dict[str, Any]:
    """What the script needs of the configuration. Raises ConfigError where it is not one of the marketplace's kind."""
    counters = [field for field in config.fields if field.kind == "counter"]
    windows = {_days(seconds): seconds // DAY_SECONDS for field in counters for seconds in field.windows}
    sequence = _only(config, "sequence")
    if config.label.clicks is None or config.features.publish_every != DAY_SECONDS or len(counters) != 4:
        raise ConfigError("the script for DuckDB knows logs with clicks, a daily publish and four counters")
    return {
        "raw": str(raw), "out": str(out), "temporary": str(temporary), "threads": threads, "memory": memory,
        "label_window": config.label_window * 1_000_000, "spans": _spans(config),
        "users": _keys(config, "user"), "items": _keys(config, "item"), "context": _keys(config, "context"),
        "user_numbers": _numbers(config, "user"), "item_numbers": _numbers(config, "item"),
        "counters": {field.name: field.by[0] for field in counters}, "counter_days": windows,
        "prior_strength": counters[0].prior_strength, "sequence_length": sequence.length,
        "tags_length": _only(config, "multi_valued").length, "cross": list(_only(config, "cross").parts),
        "grains": {name: list(field.bins()) for field in config.fields if field.bins() for name in field.features()},
    }


def _only(config: Config, kind: str) -> FieldConfig:
    found = [field for field in config.fields if field.kind == kind]
    if len(found) != 1:
        raise ConfigError(f"the script for DuckDB knows one field of kind {kind}; this configuration has {len(found)}")
    return found[0]


def _keys(config: Config, side: str) -> dict[str, int]:
    keys = [field for field in config.fields if field.kind == "categorical" and field.side == side]
    return {field.name: field.min_count for field in keys}


def _numbers(config: Config, side: str) -> dict[str, bool]:
    return {field.name: field.log for field in config.fields if field.kind == "numeric" and field.side == side}


def _days(seconds: int) -> str:
    return f"{seconds // DAY_SECONDS}d"


def _spans(config: Config) -> Mapping[str, list[int]]:
    named = config.windows.named()
    spans = {name: window for name, window in named.items() if isinstance(window, tuple)}
    if len(spans) != len(named):
        raise ConfigError("the script for DuckDB knows windows between dates")
    return {name: [round(moment.timestamp() * 1_000_000) for moment in window] for name, window in spans.items()}
