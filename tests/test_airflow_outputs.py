"""What the DAGs read of the platform is what the platform writes; they know its keys and import none of it."""

from __future__ import annotations

import json

from google.protobuf.json_format import MessageToJson

from airflow_dags import run_outputs
from contracts.release import registration
from contracts.release.registration import RegistrationSummary, VersionTags
from contracts.summaries import summary
from serving.proto import sluice_pb2 as pb

WRITTEN = RegistrationSummary(
    name="shop", number="1", alias="challenger", registry="sqlite:///r.db",
    tags=VersionTags(bundle_version="shop-1", content_hash="c0ffee"))


def test_the_keys_are_fields_of_the_records():
    assert run_outputs.NAME in RegistrationSummary.model_fields
    assert RegistrationSummary.model_fields[run_outputs.TAGS].annotation is VersionTags
    assert run_outputs.BUNDLE_VERSION in VersionTags.model_fields
    assert run_outputs.ANSWERED_VERSION in {field.json_name for field in pb.RankResponse.DESCRIPTOR.fields}


def test_a_registration_that_the_platform_wrote_is_read(tmp_path):
    summary.write(tmp_path / registration.FOLDER, WRITTEN)
    assert (tmp_path / run_outputs.REGISTRATION).exists()
    assert run_outputs.registered(tmp_path) == run_outputs.Registered("shop", "shop-1")


def test_the_version_of_an_answer_is_read():
    line = MessageToJson(pb.RankResponse(bundle_version="shop-1"), indent=None)
    assert run_outputs.answered_version(line) == "shop-1"
    assert json.loads(line)[run_outputs.ANSWERED_VERSION] == "shop-1"
