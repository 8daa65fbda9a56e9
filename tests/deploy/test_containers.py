"""What the files for containers promise: nobody is root, roots are read-only, versions are fixed, options exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from contracts import metrics_file
from sluice.cli import app

ROOT = Path(__file__).parents[2]
CONTAINERS, MANIFESTS = ROOT / "deploy" / "containers", ROOT / "deploy" / "kubernetes" / "serving.yml"
IMAGES = sorted(CONTAINERS.glob("*.Containerfile"))
SERVICES: dict[str, Any] = yaml.safe_load((CONTAINERS / "compose.yml").read_text("utf-8"))["services"]
OBJECTS: dict[str, Any] = {one["kind"]: one for one in yaml.safe_load_all(MANIFESTS.read_text("utf-8"))}
POD = OBJECTS["Deployment"]["spec"]["template"]["spec"]
OWN = {"sluice-serving", "sluice-jobs", "sluice-scheduler"}


@pytest.mark.parametrize("path", IMAGES, ids=lambda path: path.stem)
def test_an_image_runs_as_nobody_from_a_fixed_base_and_copies_what_is_there(path: Path) -> None:
    text = path.read_text("utf-8")
    bases = re.findall(r"^FROM (\S+)", text, re.M)
    assert all(base in OWN or re.search(r":\d+\.\d+\.\d+-", base) for base in bases)
    assert re.findall(r"^USER (\S+)", text, re.M)[-1] == "10001:10001"
    for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.M):
        assert all((ROOT / name).exists() for name in line.split()[:-1])


@pytest.mark.parametrize("name", ["serving", "jobs"])
def test_an_image_installs_all_packages_and_extras_that_are_there(name: str) -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    text = (CONTAINERS / f"{name}.Containerfile").read_text("utf-8")
    copied = {word for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.M) for word in line.split()[:-1]}
    packages = {one.rstrip("*") for one in told["tool"]["setuptools"]["packages"]["find"]["include"]}
    beside = {"pyproject.toml", "constraints.txt", told["project"]["readme"], *told["project"]["license-files"]}
    assert copied == packages - {"benchmarks"} | beside
    variables = dict(re.findall(r'^ARG (\w+)="(.*)"$', text, re.M))
    extras = re.sub(r"\$\{(\w+)\}", lambda one: variables[one[1]], re.findall(r'"\.\[(.+?)\]"', text)[0])
    assert set(extras.split(",")) <= set(told["project"]["optional-dependencies"])


@pytest.mark.parametrize("name", ["serving", "jobs"])
def test_what_an_image_runs_may_be_compiled_there(name: str) -> None:
    """A file system that is mounted noexec, as Docker does by default, would have its kernels left out in silence."""
    last = (CONTAINERS / f"{name}.Containerfile").read_text("utf-8").rpartition("\nFROM ")[2]
    assert re.search(r"apt-get install .*g\+\+", last)
    assert "HOME=/tmp" in last
    assert all(one["tmpfs"] == ["/tmp:exec"] for one in SERVICES.values() if one["image"] in OWN)


def test_services_are_tight_and_pinned_and_mount_what_is_there() -> None:
    for name, service in SERVICES.items():
        assert service["image"] in OWN or re.search(r":v?\d+\.\d+", service["image"]), name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ())), name
        mounts = [mount.split(":")[0] for mount in service.get("volumes", ()) if mount.startswith(".")]
        assert all((CONTAINERS / mount).exists() for mount in mounts), name
    ours = [service for service in SERVICES.values() if service["image"] in OWN]
    assert all(one["read_only"] and one["cap_drop"] == ["ALL"] and one["user"] == "10001:10001" for one in ours)


def test_the_schedulers_variables_are_those_of_the_dags() -> None:
    told = (ROOT / "airflow_dags" / "settings.py").read_text("utf-8")
    given = {*SERVICES["scheduler"]["environment"], *re.findall(
        r"AIRFLOW_VAR_\w+", (CONTAINERS / "scheduler.Containerfile").read_text("utf-8"))}
    named = {name.removeprefix("AIRFLOW_VAR_").lower() for name in given if name.startswith("AIRFLOW_VAR_")}
    assert {name for name in named if not re.search(rf"^    {name}  ", told, re.M)} == set()
    assert {"sluice", "sluice_config", "sluice_data", "sluice_registry"} <= named


def test_what_is_named_among_services_and_volumes_is_there() -> None:
    compose = yaml.safe_load((CONTAINERS / "compose.yml").read_text("utf-8"))
    assert {"server", "gateway", "redis", "postgres", "mlflow", "scheduler", "node_exporter", "prometheus",
            "grafana"} == set(SERVICES)
    for service in SERVICES.values():
        assert set(service.get("depends_on", ())) <= set(SERVICES)
        volumes = {mount.split(":")[0] for mount in service.get("volumes", ()) if not mount.startswith((".", "$"))}
        assert volumes <= set(compose["volumes"])


def test_prometheus_asks_services_and_the_jobs_figures_reach_one() -> None:
    asked = yaml.safe_load((CONTAINERS / "prometheus.yml").read_text("utf-8"))["scrape_configs"]
    targets = [target for job in asked for one in job["static_configs"] for target in one["targets"]]
    assert {target.split(":")[0] for target in targets} == {"server", "node_exporter"}
    folder = SERVICES["scheduler"]["environment"][metrics_file.SHARED_FOLDER]
    assert f"job_figures:{folder}" in SERVICES["scheduler"]["volumes"]
    reader = SERVICES["node_exporter"]
    assert reader["volumes"] == [f"job_figures:{folder}:ro"]
    assert f"--collector.textfile.directory={folder}" in reader["command"]


def test_a_pod_is_nobody_with_a_read_only_root_and_probes_of_grpc() -> None:
    server = POD["containers"][0]
    assert POD["securityContext"]["runAsNonRoot"]
    assert server["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    assert all(server[probe]["grpc"]["port"] == 50051 for probe in ("startupProbe", "readinessProbe", "livenessProbe"))
    assert {mount["name"] for mount in server["volumeMounts"]} == {volume["name"] for volume in POD["volumes"]}


def test_objects_name_one_another() -> None:
    labels = OBJECTS["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert OBJECTS["Service"]["spec"]["selector"] == labels
    assert OBJECTS["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    scaled = OBJECTS["HorizontalPodAutoscaler"]["spec"]
    assert scaled["scaleTargetRef"]["name"] == OBJECTS["Deployment"]["metadata"]["name"]
    assert scaled["metrics"][0]["pods"]["metric"]["name"] == "sluice_queue_age_seconds"


@pytest.mark.parametrize("words", [POD["containers"][0]["args"], SERVICES["gateway"]["command"]], ids=["serve", "gate"])
def test_commands_and_options_are_sluices_own(words: list[str]) -> None:
    told = CliRunner().invoke(app, [words[0], "--help"], terminal_width=200).stdout
    assert all(word in told for word in words if word.startswith("--"))
