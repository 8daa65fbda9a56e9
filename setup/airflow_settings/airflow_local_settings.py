"""Airflow's own hook for its installations: here, its log servers listen on loopback.

Airflow 3.3 starts them with uvicorn on all interfaces and has no setting for it (airflow/utils/serve_logs/core.py).
"""

from __future__ import annotations

from typing import Any

import uvicorn

_run = uvicorn.run


def _on_loopback(app: Any, *, host: str = "127.0.0.1", **settings: Any) -> None:
    """An empty host means all interfaces."""
    _run(app, host=host or "127.0.0.1", **settings)


uvicorn.run = _on_loopback
