"""Who looks on while requests are answered: told of every call once it has ended, so that no caller waits for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from contracts.bundle.bundle import Manifest
from serving.metrics.metrics_folder import is_on
from serving.request.query import PageAnswer, RankAnswer
from serving.response_log.response_log import ResponseLog

if TYPE_CHECKING:
    from serving.metrics.serving_metrics import ServingMetrics

WATCH_SECONDS = 0.5
Caller = Mapping[str, str]
UNKNOWN: Caller = {}


class EndedCall(NamedTuple):
    """`status` is gRPC's, `seconds` from arrival to answer, `answer` of `Rank` where it was sent in time; `caller` is
    what RequestObserver.caller has kept of the call."""

    method: str
    status: str
    seconds: float = 0.0
    answer: RankAnswer | PageAnswer | None = None
    request_id: str = ""
    caller: Caller = UNKNOWN


class Call(Protocol):
    """What gRPC knows of a call."""

    def invocation_metadata(self) -> object: ...


class RequestObserver:
    """Counts calls where there are `metrics`."""

    def __init__(self, metrics: ServingMetrics | None = None) -> None:
        self.metrics = metrics

    def caller(self, call: Call) -> Caller:
        """What is kept of a call until it has ended."""
        return UNKNOWN

    def ended(self, call: EndedCall) -> None:
        """Once per call, whatever came of it."""
        if self.metrics is not None:
            self.metrics.ended(call.method, call.status, call.seconds, call.answer)

    def close(self) -> None:
        """This process serves no more."""
        if self.metrics is not None:
            self.metrics.stopped()


NOBODY = RequestObserver()


def observer_of_process() -> RequestObserver:
    """As the environment says."""
    if not is_on():
        return NOBODY
    from prometheus_client import CollectorRegistry  # not before: it looks at the environment once

    from serving.metrics.serving_metrics import ServingMetrics

    return RequestObserver(ServingMetrics(CollectorRegistry()))


async def watch(
    observer: RequestObserver, manifest: Manifest, queue: Callable[[], tuple[int, float]], answers: ResponseLog | None
) -> None:
    """Keeps what changes without a call current, until cancelled."""
    metrics = observer.metrics
    if metrics is None:
        return
    metrics.serving(manifest.version, manifest.created.timestamp())
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            metrics.queue(*queue())
            if answers is not None:
                state = answers.state
                metrics.response_log(state.waiting, state.lost, bool(state.cause))
            await asyncio.sleep(WATCH_SECONDS)
