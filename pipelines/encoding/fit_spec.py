"""Fits the feature spec and its vocabularies on the training window, and on nothing later.

Fields first, crosses after them: a cross without buckets has a vocabulary of the mixed-radix codes of its parts' ids.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.artifacts import BID, ITEM, POSITION, USER, Artifacts
from contracts.atomic_write import put_in_place
from contracts.config.config import Config
from contracts.config.fields import FieldConfig
from contracts.errors import ConfigError
from contracts.features import vocabulary
from contracts.features.feature_spec import FIRST_ID, FeatureField, FeatureSpec
from contracts.features.vocabulary import Vocabulary
from pipelines.encoding import fit_bins
from pipelines.encoding.encode_examples import cross_codes
from pipelines.encoding.fit_vocabulary import CountedField, fit_vocabularies
from pipelines.encoding.training_window import training_rows
from pipelines.engine.day_partitions import rows_in
from pipelines.engine.session import BESIDE_ROWS, beside

LARGEST_CODE = 2**63


def fit(spark: SparkSession, config: Config, out: Artifacts, keep_fields: bool = False) -> FeatureSpec:
    """Reads the features of the training window; replaces the folder `encoding`. `keep_fields` fits crosses alone."""
    train = training_rows(spark, config, out)
    aside = out.encoding.with_name(f".{out.encoding.name}.staging")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    room = rows_in(out.features) <= BESIDE_ROWS
    spec, _ = fit_again(train, config, out, aside) if keep_fields else fit_fields(train, config, aside, room)
    spec.write(aside)
    put_in_place(aside, out.encoding)
    return spec


def fit_fields(
    train: DataFrame, config: Config, folder: Path, room: bool = True
) -> tuple[FeatureSpec, dict[str, Vocabulary]]:
    """Spec, and vocabularies by name, written below `folder`. `room`: whether memory has room for keys and numbers
    beside one another.

    Raises ConfigError where a cross has more codes than an int64 holds.
    """
    def measured() -> tuple[int | None, dict[str, fit_bins.Bins]]:
        rows, positions = _rows_and_positions(train)
        return positions, fit_all_bins(train, rows, config, folder)

    with beside(measured, room) as numbers:
        vocabularies = fit_vocabularies(train, counted_fields(config), folder)
        positions, bins = numbers()
    plain = [field for field in config.fields if field.kind != "cross"]
    fitted = [made for field in plain for made in _fields(field, config, vocabularies, bins)]
    return _fit_with_crosses(train, _spec(train, positions, fitted), config, vocabularies, folder)


def fit_again(
    train: DataFrame, config: Config, out: Artifacts, folder: Path
) -> tuple[FeatureSpec, dict[str, Vocabulary]]:
    """The stored fields as they are, with the crosses of the configuration; vocabularies below `folder`."""
    stored = FeatureSpec.read(out.encoding)
    plain = stored.model_copy(update={"fields": tuple(field for field in stored.fields if field.kind != "cross")})
    needed = {field.vocabulary for field in plain.fields}
    for name, keys in vocabulary.read_all(out.encoding).items():
        if name in needed:
            vocabulary.write(folder, name, keys)
    return _fit_with_crosses(train, plain, config, vocabulary.read_all(folder), folder)


def _fit_with_crosses(
    train: DataFrame, plain: FeatureSpec, config: Config, vocabularies: dict[str, Vocabulary], folder: Path
) -> tuple[FeatureSpec, dict[str, Vocabulary]]:
    crosses = [field for field in config.fields if field.kind == "cross"]
    vocabularies = vocabularies | fit_crosses(train, plain, crosses, vocabularies, folder)
    fields = (*plain.fields, *(_cross(field, vocabularies) for field in crosses))
    return plain.model_copy(update={"fields": fields}), vocabularies


def counted_fields(config: Config) -> list[CountedField]:
    """Those with a vocabulary of their own; a sequence has its target's."""
    lengths = {"categorical": lambda field: None, "multi_valued": lambda field: field.length}
    counted = [field for field in config.fields if field.kind in lengths]
    return [CountedField(f.name, f.key_type, f.min_count, lengths[f.kind](f)) for f in counted]


def dense_features(field: FieldConfig) -> list[tuple[str, bool]]:
    """(feature name, log) of every dense feature a field stands for; counts are heavy-tailed, so they are logged."""
    if field.kind == "counter":
        return [(name, statistic == "count") for name, statistic, _ in field.counters()]
    return [(field.name, field.log)] if field.kind == "numeric" else []


def fit_all_bins(train: DataFrame, rows: int, config: Config, folder: Path) -> dict[str, fit_bins.Bins]:
    """By feature name, from one sample of all numbers; `rows` are those of `train`."""
    logs = {name: (log, field) for field in config.fields for name, log in dense_features(field)}
    values = fit_bins.sample(train, rows, list(logs), folder)
    return {name: fit_bins.fit(values[name], field.bins(), log, name)
            for name, (log, field) in logs.items()}


def _fields(
    field: FieldConfig, config: Config, vocabularies: Mapping[str, Vocabulary], bins: Mapping[str, fit_bins.Bins],
) -> list[FeatureField]:
    dense = [
        FeatureField(name=name, kind=field.kind, side=field.side, log=log, cost=field.cost, **bins[name]._asdict())
        for name, log in dense_features(field)
    ]
    if dense:
        return dense
    target = next(other for other in config.fields if other.name == field.of) if field.of else field
    return [FeatureField(
        name=field.name, kind=field.kind, side=field.side, key_type=target.key_type, vocabulary=target.name,
        size=len(vocabularies[target.name]) + FIRST_ID, of=field.of, cost=field.cost,
        length=1 if field.kind == "categorical" else field.length,
    )]


def _rows_and_positions(train: DataFrame) -> tuple[int, int | None]:
    """(how many, the last position that was shown, None where the log has no positions), from one pass."""
    last = F.max(POSITION) if POSITION in train.columns else F.lit(None)
    rows, position = train.agg(F.count(F.lit(1)), last.cast("int")).collect()[0]
    return rows, (position or 0) if POSITION in train.columns else None


def _spec(train: DataFrame, positions: int | None, fields: list[FeatureField]) -> FeatureSpec:
    return FeatureSpec(
        fields=tuple(fields), has_users=USER in train.columns, has_items=ITEM in train.columns,
        has_position=positions is not None, has_bid=BID in train.columns, positions=positions or 0,
    )


def fit_crosses(
    train: DataFrame, spec: FeatureSpec, crosses: list[FieldConfig], vocabularies: Mapping[str, Vocabulary],
    folder: Path,
) -> dict[str, Vocabulary]:
    """Vocabularies of the crosses without buckets."""
    for field in crosses:
        check_codes(field, spec)
    fitted = [field for field in crosses if not field.buckets and field.representation == "embedding"]
    if not fitted:
        return {}
    codes = cross_codes(train, spec, {field.name: field.parts for field in fitted}, vocabularies)
    return fit_vocabularies(codes, [CountedField(field.name, "int64", field.min_count) for field in fitted], folder)


def check_codes(field: FieldConfig, spec: FeatureSpec) -> None:
    """Raises ConfigError where a cross has more codes than an int64 holds."""
    codes = math.prod(spec.slot(part).size for part in field.parts)
    if codes >= LARGEST_CODE:
        raise ConfigError(
            f"cross {field.name!r} of {', '.join(field.parts)} has {codes:.3g} codes, more than the {LARGEST_CODE:.3g} "
            "an int64 holds; cross fewer parts or raise their min_count"
        )


def _cross(field: FieldConfig, vocabularies: Mapping[str, Vocabulary]) -> FeatureField:
    fitted = vocabularies.get(field.name)
    entries = field.buckets if fitted is None else len(fitted)
    return FeatureField(
        name=field.name, kind="cross", side="cross", key_type="int64", size=entries + FIRST_ID, parts=field.parts,
        vocabulary=None if fitted is None else field.name, buckets=field.buckets,
        representation=field.representation, cost=field.cost,
    )
