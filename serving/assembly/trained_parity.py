"""Is the ranker that is published the one that training scored the test window with?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from contracts.artifacts import ROW, TEST_LOGITS, TEST_ROWS
from contracts.bundle.bundle import load_array
from contracts.errors import BundleError, ParityError
from serving.bundle import parity


def check_as_trained(model: Path, rows: Path, limit: float) -> None:
    """The logits of the parity rows (in the folder `rows`) are those that training wrote for the same test rows.

    Raises BundleError when training left none for a row, ParityError when one differs.
    """
    if not (model / TEST_LOGITS).exists():
        raise BundleError(f"{model} has no {TEST_LOGITS}; run `sluice train` again")
    known, logits = load_array(model / TEST_ROWS), load_array(model / TEST_LOGITS)
    table = pq.read_table(rows / parity.FILE, columns=[ROW, parity.LOGIT])
    wanted = table.column(ROW).to_numpy()
    order = np.argsort(known)
    at = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
    if (known[at] != wanted).any():
        raise BundleError(f"{model}: training scored other rows than the parity sample's; run `sluice train` again")
    gaps = np.abs(logits[at] - table.column(parity.LOGIT).to_numpy())
    if not (gaps <= limit).all():
        worst = int(gaps.argmax())
        raise ParityError(
            f"row {wanted[worst]}: the published weights give a logit {gaps[worst]:.6f} away from the one that "
            f"training wrote, the limit is {limit:g}; run `sluice train` again"
        )
