from __future__ import annotations

from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG

from tests.airflow_dags.dag_rules import FOLDER
from tests.airflow_dags.fake_platform import FakePlatform


@pytest.fixture(scope="session")
def dags() -> dict[str, DAG]:
    """All DAGs of the folder, by name."""
    bag = DagBag(FOLDER)
    assert bag.import_errors == {}
    return bag.dags


@pytest.fixture
def platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakePlatform:
    return FakePlatform(tmp_path, monkeypatch)
