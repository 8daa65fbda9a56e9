"""What a job has left for Prometheus, read by Prometheus' own parser."""

from __future__ import annotations

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from contracts.metrics_file import FILE


def exported(folder: Path, job: str) -> dict[str, float]:
    """Figures of the job by their names. Raises AssertionError where there are those of another one."""
    families = text_string_to_metric_families((folder / FILE).read_text("utf-8"))
    samples = [sample for family in families for sample in family.samples if sample.name == "sluice_job_figure"]
    assert {sample.labels["job"] for sample in samples} == {job}
    return {sample.labels["figure"]: sample.value for sample in samples}
