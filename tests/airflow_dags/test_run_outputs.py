"""The record of a registration, whole and not."""

from __future__ import annotations

import pytest

from airflow_dags.run_outputs import OutputError, Registered, answered_version, registered
from tests.airflow_dags.fake_platform import FakePlatform


def test_a_registration_names_the_model_and_the_version(platform: FakePlatform) -> None:
    assert registered(platform.folder / platform.registered("run")) == Registered("shop", "shop-1")


def test_an_error_in_place_of_an_answer_is_kept_as_it_is() -> None:
    assert answered_version("nobody listens on shop:50051") == "nobody listens on shop:50051"
    assert answered_version('{"bundleVersion": "shop-1"}') == "shop-1"


@pytest.mark.parametrize("line", ['{"bundleVersion": 3}', "{}", '{"bundleVersion"'])
def test_an_answer_that_says_no_version_is_an_error(line: str) -> None:
    with pytest.raises(OutputError):
        answered_version(line)
