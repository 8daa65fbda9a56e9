"""Fits the feature spec and its vocabularies on the training window, and on nothing later.

Fields first, crosses after them: a cross without buckets has a vocabulary of the mixed-radix codes of its parts' ids.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Mapping

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.artifacts import BID, ITEM, POSITION, USER, Artifacts
from contracts.atomic_write import put_in_place
from contracts.config.config import Config
from contracts.config.fields import FieldConfig
from contracts.errors import ConfigError
from contracts.features import vocabulary
from contracts.features.feature_spec import FIRST_ID, FeatureField, FeatureSpec
from pipelines.encoding import fit_bins
from pipelines.encoding.encode_examples import radix_code, with_ids
from pipelines.encoding.fit_vocabulary import fit_lists, fit_scalar
from pipelines.encoding.training_window import training_rows

LARGEST_CODE = 2**63


def fit(spark: SparkSession, config: Config, out: Artifacts, keep_fields: bool = False) -> FeatureSpec:
    """Reads the features of the training window; replaces the folder `encoding`. `keep_fields` fits crosses alone."""
    train = training_rows(spark, config, out)
    spec, vocabularies = fit_again(train, config, out) if keep_fields else fit_fields(train, config)
    aside = out.encoding.with_name(f".{out.encoding.name}.staging")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    for name, keys in vocabularies.items():
        vocabulary.write(aside, name, keys)
    spec.write(aside)
    put_in_place(aside, out.encoding)
    return spec


def fit_fields(train: DataFrame, config: Config) -> tuple[FeatureSpec, dict[str, np.ndarray]]:
    """Spec and vocabularies by name. Raises ConfigError where a cross has more codes than an int64 holds."""
    vocabularies = fit_vocabularies(train, config)
    bins = fit_all_bins(train, config)
    plain = [f for one in config.fields if one.kind != "cross" for f in _fields(one, config, vocabularies, bins)]
    return _fit_with_crosses(train, _spec(train, plain), config, vocabularies)


def fit_again(train: DataFrame, config: Config, out: Artifacts) -> tuple[FeatureSpec, dict[str, np.ndarray]]:
    """The stored fields as they are, with the crosses of the configuration."""
    stored = FeatureSpec.read(out.encoding)
    plain = stored.model_copy(update={"fields": tuple(field for field in stored.fields if field.kind != "cross")})
    needed = {field.vocabulary for field in plain.fields}
    vocabularies = {name: keys for name, keys in vocabulary.read_all(out.encoding).items() if name in needed}
    return _fit_with_crosses(train, plain, config, vocabularies)


def _fit_with_crosses(
    train: DataFrame, plain: FeatureSpec, config: Config, vocabularies: dict[str, np.ndarray]
) -> tuple[FeatureSpec, dict[str, np.ndarray]]:
    crosses = [one for one in config.fields if one.kind == "cross"]
    vocabularies = vocabularies | fit_crosses(train, plain, crosses, vocabularies)
    fields = (*plain.fields, *(_cross(one, vocabularies) for one in crosses))
    return plain.model_copy(update={"fields": fields}), vocabularies


def fit_vocabularies(train: DataFrame, config: Config) -> dict[str, np.ndarray]:
    """By field name; a sequence has none of its own."""
    found = {}
    for one in config.fields:
        if one.kind == "categorical":
            found[one.name] = fit_scalar(train, one.name, one.key_type, one.min_count)
        elif one.kind == "multi_valued":
            found[one.name] = fit_lists(train, one.name, one.key_type, one.min_count, one.length)
    return found


def dense_features(one: FieldConfig) -> list[tuple[str, bool]]:
    """(feature name, log) of every dense feature a field stands for; counts are heavy-tailed, so they are logged."""
    if one.kind == "counter":
        return [(name, statistic == "count") for name, statistic, _ in one.counters()]
    return [(one.name, one.log)] if one.kind == "numeric" else []


def fit_all_bins(train: DataFrame, config: Config) -> dict[str, fit_bins.Bins]:
    logs = {name: (log, one) for one in config.fields for name, log in dense_features(one)}
    values = fit_bins.sample(train, list(logs))
    return {name: fit_bins.fit(values[name], one.bins(), log, name)
            for name, (log, one) in logs.items()}


def _fields(
    one: FieldConfig, config: Config, vocabularies: Mapping[str, np.ndarray], bins: Mapping[str, fit_bins.Bins],
) -> list[FeatureField]:
    dense = [
        FeatureField(name=name, kind=one.kind, side=one.side, log=log, cost=one.cost, **bins[name]._asdict())
        for name, log in dense_features(one)
    ]
    if dense:
        return dense
    target = next(other for other in config.fields if other.name == one.of) if one.of else one
    return [FeatureField(
        name=one.name, kind=one.kind, side=one.side, key_type=target.key_type, vocabulary=target.name,
        size=len(vocabularies[target.name]) + FIRST_ID, of=one.of, cost=one.cost,
        length=1 if one.kind == "categorical" else one.length,
    )]


def _spec(train: DataFrame, fields: list[FeatureField]) -> FeatureSpec:
    positions = train.agg(F.max(POSITION)).first() if POSITION in train.columns else None
    return FeatureSpec(
        fields=tuple(fields), has_users=USER in train.columns, has_items=ITEM in train.columns,
        has_position=positions is not None, has_bid=BID in train.columns,
        positions=int(positions[0] or 0) if positions else 0,
    )


def fit_crosses(
    train: DataFrame, spec: FeatureSpec, crosses: list[FieldConfig], vocabularies: Mapping[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """Vocabularies of the crosses without buckets."""
    for one in crosses:
        check_codes(one, spec)
    fitted = [one for one in crosses if not one.buckets and one.representation == "embedding"]
    if not fitted:
        return {}
    parts = {part.partition("#")[0] for one in fitted for part in one.parts}
    needed = spec.model_copy(update={"fields": tuple(f for f in spec.fields if f.name in parts)})
    encoded = with_ids(train.select(sorted(parts)), needed, vocabularies)
    codes = encoded.select([radix_code(spec, one.parts).alias(one.name) for one in fitted])
    return {one.name: fit_scalar(codes, one.name, "int64", one.min_count) for one in fitted}


def check_codes(one: FieldConfig, spec: FeatureSpec) -> None:
    codes = math.prod(spec.slot(part).size for part in one.parts)
    if codes >= LARGEST_CODE:
        raise ConfigError(
            f"cross {one.name!r} of {', '.join(one.parts)} has {codes:.3g} codes, more than the {LARGEST_CODE:.3g} "
            "an int64 holds; cross fewer parts or raise their min_count"
        )


def _cross(one: FieldConfig, vocabularies: Mapping[str, np.ndarray]) -> FeatureField:
    fitted = vocabularies.get(one.name)
    entries = one.buckets if fitted is None else len(fitted)
    return FeatureField(
        name=one.name, kind="cross", side="cross", key_type="int64", vocabulary=None if fitted is None else one.name,
        size=entries + FIRST_ID, parts=one.parts, buckets=one.buckets, representation=one.representation, cost=one.cost,
    )
