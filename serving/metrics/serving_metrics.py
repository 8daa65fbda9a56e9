"""The metrics of a server, by the conventions of Prometheus; docs/reference/metrics.md says what each one is.

Every label takes values of a fixed set: methods, gRPC's statuses, the funnel's stages and fallbacks, causes.CAUSES, the
bundle's fields, kinds of events. Only `version` is free, and bundles that nobody serves any more are not shown.

Where PROMETHEUS_MULTIPROC_DIR is set before prometheus_client is imported, the figures lie in files of that folder, one
process beside the other (serving/metrics/metrics_folder.py).
"""

from __future__ import annotations

from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from serving.events.event_users import NAME as USER_STAGE
from serving.metrics.causes import cause_of, is_degraded
from serving.metrics.freshness_metrics import DriftMetrics, FreshnessMetrics
from serving.request.query import PageAnswer, RankAnswer, StageReport, slates_of

REQUEST_SECONDS = (0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.2, 0.5, 1, 2, 5)
STAGE_SECONDS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.02, 0.05, 0.1, 0.5)
PROBABILITIES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


class ServingMetrics:
    """One per process. Methods belong to the event loop; each costs a few microseconds."""

    def __init__(self, registry: CollectorRegistry) -> None:
        requests = Counter(
            "sluice_requests_total", "Calls that have ended, by method and gRPC's status; OK was sent in time.",
            ["method", "status"], registry=registry)
        seconds = Histogram("sluice_request_seconds", "From a call's arrival to its answer, of those with status OK.",
                            ["method"], buckets=REQUEST_SECONDS, registry=registry)
        degraded = Counter("sluice_degraded_answers_total", "Answers in time in which some stage was not whole.",
                           ["method"], registry=registry)
        self._requests, self._seconds, self._degraded = cache(requests.labels), cache(seconds.labels), degraded
        stages = Histogram("sluice_stage_seconds", "What a stage of the funnel took; stages that were skipped are left "
                           "out.", ["stage"], buckets=STAGE_SECONDS, registry=registry)
        came = Counter("sluice_stage_candidates_in_total", "Candidates that a stage was given.", ["stage"],
                       registry=registry)
        left = Counter("sluice_stage_candidates_out_total", "Candidates that a stage handed on.", ["stage"],
                       registry=registry)
        self._stages, self._came, self._left = cache(stages.labels), cache(came.labels), cache(left.labels)
        self._causes = Counter("sluice_stage_degradations_total", "Stages that were cut short or replaced, by what "
                               "stood in and why.", ["stage", "fallback", "cause"], registry=registry)
        self._shown = Histogram("sluice_shown_probability", "Calibrated probabilities of the items that were shown.",
                                buckets=PROBABILITIES, registry=registry)
        self._state(registry)
        self.freshness, self.drift = FreshnessMetrics(registry), DriftMetrics(registry)

    def _state(self, registry: CollectorRegistry) -> None:
        """What is read from time to time."""
        self._workers = Gauge("sluice_workers", "Processes that serve.", registry=registry,
                              multiprocess_mode="livesum")
        self._waiting = Gauge("sluice_queue_requests", "Requests that wait for the funnel.", registry=registry,
                              multiprocess_mode="livesum")
        self._age = Gauge("sluice_queue_age_seconds", "How long the oldest of those has waited, in any process.",
                          registry=registry, multiprocess_mode="livemax")
        self._created = Gauge("sluice_bundle_created_timestamp_seconds", "When a served bundle was published.",
                              ["version"], registry=registry, multiprocess_mode="livemax")
        self._unlogged = Gauge("sluice_response_log_waiting", "Answers that are not in the response log yet.",
                               registry=registry, multiprocess_mode="livesum")
        self._failing = Gauge("sluice_response_log_failing", "1 while answers cannot be written.", registry=registry,
                              multiprocess_mode="livemax")
        self._lost = Counter("sluice_response_log_lost_total", "Answers that the response log has lost.",
                             registry=registry)
        self._known_lost = 0

    def ended(self, method: str, status: str, seconds: float, answer: RankAnswer | PageAnswer | None = None) -> None:
        """A call that was answered or refused; `answer` of `Rank` where it was sent in time."""
        self._requests(method, status).inc()
        if status == "OK":
            self._seconds(method).observe(seconds)
        slates = slates_of(answer) if answer else []
        if any(slate.degraded for slate in slates):
            self._degraded.labels(method).inc()
        for slate in slates:
            self._slate(slate)

    def refused(self, method: str, status: str, calls: int) -> None:
        """So many calls of which nothing else is known."""
        self._requests(method, status).inc(calls)

    def _slate(self, slate: RankAnswer) -> None:
        for stage in slate.stages:
            self._stage(stage)
        for item in slate.items:
            self._shown.observe(item.probability)

    def _stage(self, stage: StageReport) -> None:
        name = stage.name
        if stage.microseconds:
            self._stages(name).observe(stage.microseconds / 1e6)
            self._came(name).inc(stage.candidates_in)
            self._left(name).inc(stage.candidates_out)
        if name == USER_STAGE and stage.age is not None:
            self.freshness.user(stage.age)
        if is_degraded(stage):
            self._causes.labels(name, stage.fallback.value, cause_of(stage)).inc()

    def serving(self, version: str, created: float) -> None:
        """This process answers from now on; `created` in seconds of the epoch."""
        self._workers.set(1)
        self._created.labels(version).set(created)

    def stopped(self) -> None:
        """It is to get no more calls."""
        self._workers.set(0)

    def queue(self, waiting: int, age: float) -> None:
        """`age` in seconds."""
        self._waiting.set(waiting)
        self._age.set(age)

    def response_log(self, waiting: int, lost: int, failing: bool) -> None:
        """`lost` since the process began."""
        self._unlogged.set(waiting)
        self._failing.set(failing)
        self._lost.inc(max(lost - self._known_lost, 0))
        self._known_lost = max(lost, self._known_lost)
