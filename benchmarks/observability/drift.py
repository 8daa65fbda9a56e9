"""Does drift tell what has changed, and nothing else: a real server, asked as its log was, and then otherwise.

    sluice bench drift OUT [--requests 600] [--rate 11] [--change device=phone] [--json]

OUT is a finished run (`sluice demo --out OUT`). Requests are impressions of its training window with their users and
contexts: the bundle's counters of the last days know the impressions of the later windows, so that who comes there has
been there, which no requester of a coming day has to. One server is asked with these and another one with the context
changed; PSI by field is read from /metrics once the sample is of as many requests (at most ten a second are taken: a
minute for each server).
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from contracts.artifacts import Artifacts
from contracts.errors import ConfigError
from contracts.features.feature_spec import FeatureSpec
from serving.server.client import RankingClient
from sluice.demo.live_requests import Visit, sample_impressions
from sluice.demo.server_process import ServerProcess

SIDE = "console and metrics on "
LOOK_SECONDS, MOST_SECONDS = 1.0, 600.0
SAMPLE, SCORES, FIELDS = "sluice_drift_sample_requests", "sluice_score_drift_psi", "sluice_field_drift_psi"
SHOWN = "shown probabilities"


def read_psi(text: str, requests: int) -> dict[str, float] | None:
    """PSI by field, and of SHOWN; None while the sample is of fewer requests."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    counted = {sample.name: sample.value for sample in samples if not sample.labels}
    if counted.get(SAMPLE, 0) < requests or SCORES not in counted:
        return None
    return {SHOWN: counted[SCORES], **{sample.labels["field"]: sample.value for sample in samples
                                       if sample.name == FIELDS}}


def measure(bundle: Path, visits: Sequence[Visit], requests: int, rate: float) -> dict[str, float]:
    """PSI once a server has sampled so many of the visits, which are sent one every 1 / rate seconds, over and over."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "server.log"
        server = ServerProcess(bundle, log, options=("--workers", "1", "--metrics-port", "0"))
        try:
            side = log.read_text().partition(SIDE)[2].split()[0]
            with RankingClient(server.target) as client:
                return _asked(client, f"{side}metrics", visits, requests, rate)
        finally:
            server.stop()


def _asked(
    client: RankingClient, metrics: str, visits: Sequence[Visit], requests: int, rate: float
) -> dict[str, float]:
    begun = looked = time.monotonic()
    for number in range(round(MOST_SECONDS * rate)):
        time.sleep(max(begun + number / rate - time.monotonic(), 0))
        visit = visits[number % len(visits)]
        client.rank(visit.user, context=visit.context, seconds=5.0)
        if time.monotonic() - looked > LOOK_SECONDS:
            looked = time.monotonic()
            with urllib.request.urlopen(metrics, timeout=30) as answer:
                found = read_psi(answer.read().decode(), requests)
            if found is not None:
                return found
    raise TimeoutError(f"no drift of {requests} requests within {MOST_SECONDS:.0f} s")


def changed(visits: Sequence[Visit], name: str, value: str) -> list[Visit]:
    """All with the same value of a context field."""
    return [replace(visit, context={**visit.context, name: value}) for visit in visits]


def known_change(spec: FeatureSpec, change: str) -> tuple[str, str]:
    """Raises ConfigError where it is not of a context field, which servers would refuse after the first minute."""
    name, _, value = change.partition("=")
    context = [field.name for field in spec.of_side("context")]
    if name not in context or not value:
        raise ConfigError(f"--change {change}: give FIELD=VALUE of a context field; there are {', '.join(context)}")
    return name, value


def main() -> None:
    parser = argparse.ArgumentParser(prog="sluice bench drift", description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--requests", type=int, default=600)
    parser.add_argument("--rate", type=float, default=11.0)
    parser.add_argument("--change", default="device=phone")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    out = Artifacts(given.out)
    spec = FeatureSpec.read(out.bundle)
    name, value = known_change(spec, given.change)
    visits = sample_impressions(out, spec, "train", round(1.5 * given.requests), given.seed)
    found = {"as logged": measure(out.bundle, visits, given.requests, given.rate),
             given.change: measure(out.bundle, changed(visits, name, value), given.requests, given.rate)}
    for field in sorted(found["as logged"], key=lambda one: -found["as logged"][one]):
        print(f"{field:34}" + "".join(f"{psi.get(field, float('nan')):10.3f}" for psi in found.values()))
    if given.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
