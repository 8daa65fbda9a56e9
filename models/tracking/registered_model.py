"""A bundle as MLflow keeps a model: a folder with MLmodel (flavour `sluice`, signature) and `bundle/`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from contracts.bundle.bundle import Manifest
from contracts.features.feature_spec import FeatureField, FeatureSpec

BUNDLE, VERSION = "bundle", "bundle_version"


def write_model(target: Path, folder: Path, manifest: Manifest) -> None:
    """Of the bundle in `folder`, into the empty folder `target`."""
    from mlflow.models import Model

    model = Model(signature=_signature(FeatureSpec.read(folder)), metadata={VERSION: manifest.version})
    model.add_flavor("sluice", bundle=BUNDLE, schema_version=manifest.schema_version)
    model.save(str(target / "MLmodel"))
    shutil.copytree(folder, target / BUNDLE)


def _signature(spec: FeatureSpec) -> Any:
    """What a request may say and what an answer holds; a bundle without items takes a row and gives a probability."""
    from mlflow.models import ModelSignature
    from mlflow.types import ColSpec, Schema

    probability = ColSpec("double", "probability")
    if not spec.has_items:
        inputs: list[Any] = [_column(field) for field in spec.of_side("user", "context", "item")]
        return ModelSignature(Schema(inputs), Schema([probability]))
    inputs = [ColSpec("string", "user_id")]
    inputs += [_column(field) for field in spec.of_side("context")]
    outputs: list[Any] = [ColSpec("string", "item_id"), probability, ColSpec("double", "score")]
    return ModelSignature(Schema(inputs), Schema(outputs))


def _column(field: FeatureField) -> Any:
    from mlflow.types import ColSpec, DataType
    from mlflow.types.schema import Array

    keys = {"string": DataType.string, "int64": DataType.long, "bool": DataType.boolean}
    kind = DataType.double if field.kind in ("numeric", "counter") else keys[field.key_type]
    several = field.kind in ("multi_valued", "sequence")
    return ColSpec(Array(kind) if several else kind, field.name, required=False)
