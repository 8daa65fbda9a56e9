"""What MLflow reads of a bundle that is one of its models."""

from __future__ import annotations

from pathlib import Path

from contracts.bundle import bundle
from contracts.features.feature_spec import FeatureField, FeatureSpec
from models.tracking.registered_model import BUNDLE, VERSION, write_model

FIELDS = (
    FeatureField(name="age", kind="numeric", side="user", edges={2: (3.0,)}),
    FeatureField(name="device", kind="categorical", side="context", vocabulary="device", size=4),
    FeatureField(name="hour", kind="numeric", side="context", edges={2: (3.0,)}),
    FeatureField(name="brand", kind="categorical", side="item", key_type="int64", vocabulary="brand", size=4),
)


def test_the_signature_says_what_a_request_may_say(tmp_path: Path) -> None:
    from mlflow.models import Model

    build = tmp_path / "build"
    build.mkdir()
    FeatureSpec(fields=FIELDS).write(build)
    manifest = bundle.publish(build, tmp_path / "published", "shop")
    target = tmp_path / "model"
    target.mkdir()
    write_model(target, tmp_path / "published", manifest)
    model = Model.load(str(target))
    assert model.signature is not None
    assert model.signature.inputs.input_names() == ["user_id", "device", "hour"]
    assert model.signature.inputs.required_input_names() == ["user_id"]
    assert model.signature.outputs.input_names() == ["item_id", "probability", "score"]
    assert model.metadata == {VERSION: manifest.version}
    assert bundle.verify(target / BUNDLE) == manifest
