"""MLflow's SQLite data base, made aside and then put in its place: a process killed while it makes one leaves none.

MLflow makes its tables and then migrates them, for seconds, in the file itself; half of that can never be opened again.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

SQLITE = "sqlite:///"


def made(uri: str) -> str:
    """`uri`, whose data base is there afterwards where it is one of SQLite; another process may make it meanwhile."""
    path = Path(uri.removeprefix(SQLITE))
    if not uri.startswith(SQLITE) or path.exists():
        return uri
    from mlflow.tracking import MlflowClient

    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as folder:
        fresh, whole = Path(folder, "fresh.db"), Path(folder, "whole.db")
        MlflowClient(tracking_uri=f"{SQLITE}{fresh}").search_experiments(max_results=1)
        with closing(sqlite3.connect(fresh)) as source, closing(sqlite3.connect(whole)) as copy:
            source.backup(copy)
        try:
            os.link(whole, path)
        except OSError:  # made by another meanwhile, or a file system without links
            if not path.exists():
                whole.rename(path)
    return uri
