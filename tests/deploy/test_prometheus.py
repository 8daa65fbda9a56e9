"""Rules and dashboard: parsed by Prometheus' own tool where it is installed, and about metrics that exist."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

from serving.metrics.serving_metrics import ServingMetrics

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES, FAULTS = DEPLOY / "prometheus" / "rules.yml", sorted((DEPLOY / "prometheus").glob("*_test.yml"))
PANELS = json.loads((DEPLOY / "grafana" / "sluice.json").read_text("utf-8"))["panels"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
JOBS = {"sluice_job_figure", "sluice_job_finished_timestamp_seconds"}
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")


def rules() -> list[dict[str, str]]:
    return [rule for group in yaml.safe_load(RULES.read_text("utf-8"))["groups"] for rule in group["rules"]]


def promtool(*words: str) -> str:
    done = subprocess.run(["promtool", *words], capture_output=True, text=True, cwd=DEPLOY / "prometheus")
    return "" if done.returncode == 0 else done.stdout + done.stderr


@pytest.mark.slow
@needs_promtool
def test_every_alert_fires_by_its_fault_and_not_before() -> None:
    assert promtool("test", "rules", *map(str, FAULTS)) == ""


def test_every_alert_has_a_fault_that_fires_it_and_is_quiet_before() -> None:
    alerts = {rule["alert"] for rule in rules() if "alert" in rule}
    assert alerts
    quiet, fired = set[str](), set[str]()
    for fault in (one for path in FAULTS for one in yaml.safe_load(path.read_text("utf-8"))["tests"]):
        for one in fault["alert_rule_test"]:
            (fired if one["exp_alerts"] else quiet).add(one["alertname"])
        for one in fault.get("promql_expr_test", ()):  # of one whose words depend on how a rate is extrapolated
            assert one["exp_samples"]
            fired |= set(re.findall(r'alertname="(\w+)",alertstate="firing"', one["expr"]))
    assert (quiet, fired) == (alerts, alerts)


@needs_promtool
def test_the_configuration_and_the_dashboards_queries_are_prometheus_own_language(tmp_path: Path) -> None:
    assert promtool("check", "config", "prometheus.yml") == ""
    asked = [{"record": f"panel:{number}", "expr": expression} for number, expression in enumerate(EXPRESSIONS)]
    (tmp_path / "panels.yml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": asked}]}))
    assert promtool("check", "rules", str(tmp_path / "panels.yml")) == ""


def test_they_ask_for_metrics_that_exist() -> None:
    registry = CollectorRegistry()
    ServingMetrics(registry)
    known = {metric.name + ("_total" if metric.type == "counter" else "") for metric in registry.collect()} | JOBS
    texts = [*EXPRESSIONS, *(rule["expr"] for rule in rules())]
    asked = {name for text in texts for name in re.findall(r"\bsluice_[a-z_]+", text)}
    assert {name for name in asked if re.sub(r"_(bucket|sum|count)$", "", name) not in known | {name} & known} == set()
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    assert {name for text in texts for name in re.findall(r"\bsluice:[a-z0-9_:]+", text)} <= recorded


def test_panels_lie_beside_one_another_and_have_their_own_numbers() -> None:
    cells = [(x, y) for panel in PANELS for place in [panel["gridPos"]]
             for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) == 23
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    assert all(panel["title"] and panel["targets"] for panel in PANELS)
