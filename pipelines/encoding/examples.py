"""examples/WINDOW/day=D: encoded examples of train, validation and test, at most four files a day, sorted by row id.

The negatives of the training window are thinned here, with the same rows kept on any cluster.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from contracts.artifacts import DAY, ROW, WINDOWS, Artifacts
from contracts.config.config import Config
from contracts.features.feature_spec import FeatureSpec
from contracts.features.vocabulary import Vocabulary
from pipelines.encoding.encode_examples import encode
from pipelines.engine.day_partitions import publish
from pipelines.windows.down_sampling import positives_and_some_negatives
from pipelines.windows.windows import WINDOW

FILES_PER_DAY = 4


def write(
    windowed: DataFrame, spec: FeatureSpec, vocabularies: Mapping[str, Vocabulary], config: Config, out: Artifacts,
    day: str | None = None,
) -> dict[str, list[str]]:
    """Replaces all days, or exactly `day`, of every window; returns the days that changed by window.

    `windowed` are features as pipelines/encoding/training_window.py hands them out.
    """
    wanted = windowed.where(F.col(WINDOW).isin(*WINDOWS))
    wanted = wanted if day is None else wanted.where(F.col(DAY) == day)
    thinned = wanted.where((F.col(WINDOW) != "train") | positives_and_some_negatives(config.features.negative_rate))
    staging = _stage(encode(thinned, spec, vocabularies, keep=(WINDOW, DAY)), out)
    only = None if day is None else [day]
    written = {}
    for window in WINDOWS:
        staged = staging / f"{WINDOW}={window}"
        staged.mkdir(exist_ok=True)
        written[window] = publish(windowed.sparkSession, staged, out.examples(window), only)
    shutil.rmtree(staging)
    return written


def _stage(encoded: DataFrame, out: Artifacts) -> Path:
    staging = out.examples("train").with_name(".staging")
    shutil.rmtree(staging, ignore_errors=True)
    spread = encoded.repartition(WINDOW, DAY, F.pmod(F.col(ROW), F.lit(FILES_PER_DAY)))
    spread.sortWithinPartitions(WINDOW, DAY, ROW).write.partitionBy(WINDOW, DAY).parquet(str(staging))
    return staging
