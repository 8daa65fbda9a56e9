"""Other versions of a bundle, for what is served in its place."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from contracts.bundle import bundle


def variant(source: Path, folder: Path, mark: str) -> Path:
    """The same bundle under another version: one more file, which nobody reads."""
    build = Path(shutil.copytree(source, folder / f"build-{mark}"))
    (build / bundle.MANIFEST).unlink()
    (build / "mark").write_text(mark)
    bundle.publish(build, folder / mark, "market")
    return folder / mark


def with_other_logits(source: Path, folder: Path) -> Path:
    """A bundle whose checksums hold and whose parity rows do not."""
    build = Path(shutil.copytree(source, folder / "build-bad"))
    (build / bundle.MANIFEST).unlink()
    rows = pq.read_table(build / "parity" / "rows.parquet")
    at = rows.schema.get_field_index("_logit")
    changed = rows.set_column(at, "_logit", pa.array(rows["_logit"].to_numpy() + 1.0))
    pq.write_table(changed, build / "parity" / "rows.parquet")
    bundle.publish(build, folder / "bad", "market")
    return folder / "bad"
