"""A few test rows, raw and encoded, by which a server proves that it computes the same ids as the pipeline did."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from contracts.artifacts import ID_PREFIX, ITEM, ROW, USER, Artifacts
from contracts.features.feature_spec import FeatureSpec
from contracts.features.vocabulary import Vocabulary
from pipelines.encoding.encode_examples import SIDES, with_ids
from pipelines.engine.day_partitions import rows_in, write_whole
from pipelines.windows.windows import WINDOW


def write(
    windowed: DataFrame, spec: FeatureSpec, vocabularies: Mapping[str, Vocabulary], rows: int, out: Artifacts,
) -> int:
    """Replaces `parity` with the `rows` test rows of smallest hash; returns how many there were.

    Columns: `_row`, `_user` and `_item` as in the log, the published raw features by name, `id:SLOT` per id slot.
    """
    test = windowed.where(F.col(WINDOW) == "test")
    chosen = test.orderBy(F.xxhash64(F.lit("parity"), F.col(ROW)), ROW).limit(rows)
    keys = [column for column in (ROW, USER, ITEM) if column in windowed.columns]
    raw = [field.name for field in spec.fields if field.kind not in ("cross", "statistic")]
    ids = [ID_PREFIX + slot.name for slot in spec.id_slots(*SIDES)]
    encoded = with_ids(chosen.select(*keys, *raw), spec, vocabularies).select(*keys, *raw, *ids)
    write_whole(encoded.coalesce(1).sortWithinPartitions(ROW), out.parity)
    return rows_in(out.parity)
