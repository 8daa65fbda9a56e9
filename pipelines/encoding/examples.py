"""examples/WINDOW/day=D: encoded examples of train, validation and test, in as many files a day as the bytes of the
largest day ask for; a file holds the rows of one remainder of the row id, sorted by it, so that rows in file order are
the same on any engine and cluster.

The negatives of the training window are thinned here, with the same rows kept on any cluster. A long log comes some
days at a time, so that what is sorted at once fits in memory.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from contracts.artifacts import DAY, ROW, WINDOWS, Artifacts
from contracts.config.config import Config
from contracts.features.feature_spec import FeatureSpec
from contracts.features.vocabulary import Vocabulary
from pipelines.encoding.encode_examples import Mapped, encode
from pipelines.engine.day_partitions import publish
from pipelines.engine.worker_files import put_in_order, workers_write, write_parted
from pipelines.windows.down_sampling import positives_and_some_negatives
from pipelines.windows.windows import WINDOW

FILE_BYTES = 256 << 20
GROUP_ROWS = 16_384  # training mixes whole row groups: of a day in one, it would see a day after the other
GROUP_OPTIONS = ("parquet.block.row.count.limit", "max_row_group_size")  # Apache Spark's, and the embedded engine's
FILE = "_file"  # the number of a row's file in its day
PLACES = (WINDOW, DAY, FILE)


def write(
    parts: Iterable[DataFrame], spec: FeatureSpec, vocabularies: Mapping[str, Vocabulary], config: Config,
    out: Artifacts, day: str | None = None,
) -> dict[str, list[str]]:
    """Replaces all days, or exactly `day`, of every window; returns the days that changed by window.

    `parts`, one at least, are features as pipelines/encoding/training_window.py hands them out, of other days each.
    """
    staging = out.examples("train").with_name(".staging")
    shutil.rmtree(staging, ignore_errors=True)
    files = files_of(out.features, day)
    for part in parts:
        wanted = part.where(F.col(WINDOW).isin(*WINDOWS))
        wanted = wanted if day is None else wanted.where(F.col(DAY) == day)
        thinned = wanted.where((F.col(WINDOW) != "train") | positives_and_some_negatives(config.features.negative_rate))
        numbered = thinned.withColumn(FILE, F.pmod(F.col(ROW), F.lit(files)))
        _stage(encode(numbered, spec, vocabularies, keep=PLACES), staging)
    only = None if day is None else [day]
    written = {}
    for window in WINDOWS:
        staged = staging / f"{WINDOW}={window}"
        staged.mkdir(parents=True, exist_ok=True)
        _flatten(staged)
        written[window] = publish(part.sparkSession, staged, out.examples(window), only)
    shutil.rmtree(staging)
    return written


def files_of(features: Path, day: str | None = None) -> int:
    """By the raw features of the day, or of the largest one: encoded, a row has about as many bytes."""
    days = features.glob(f"{DAY}={day or '*'}")
    largest = max((sum(file.stat().st_size for file in place.glob("*.parquet")) for place in days), default=0)
    return max(1, -(-largest // FILE_BYTES))


def _stage(encoded: Mapped, staging: Path) -> None:
    """Adds to what is there. The number is a folder: no engine but Apache Spark writes a file for each of its tasks."""
    if workers_write(encoded.rows):
        write_parted(encoded.rows, staging, PLACES, encoded.run, encoded.names)
        put_in_order(sorted(staging.glob("/".join(f"{name}=*" for name in PLACES))), ROW, GROUP_ROWS)
        return
    spread = encoded.frame().repartition(*PLACES).sortWithinPartitions(*PLACES, ROW)
    groups = dict.fromkeys(GROUP_OPTIONS, GROUP_ROWS)
    spread.write.mode("append").options(**groups).partitionBy(*PLACES).parquet(str(staging))


def _flatten(staged: Path) -> None:
    """day=D/_file=K/NAME becomes day=D/K-NAME; NAME is of this run alone, by which readers know what has changed."""
    for place in sorted(staged.glob(f"{DAY}=*/{FILE}=*")):
        number = int(place.name.removeprefix(f"{FILE}="))
        for file in place.glob("*.parquet"):
            file.rename(place.parent / f"{number:05d}-{file.name}")
        shutil.rmtree(place)
