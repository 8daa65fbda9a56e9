"""What one DAG makes and another waits for or reads."""

from __future__ import annotations

from airflow.sdk import Asset

FEATURES = Asset("sluice-features")
CROSSES = Asset("sluice-crosses")
CHAMPION = Asset("sluice-champion")
