"""A request and what came of it -> the row that the response log keeps."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime

from contracts.bundle.bundle import Manifest
from serving.proto import sluice_pb2 as pb
from serving.request.query import PageAnswer, RankAnswer
from serving.server.response_log import ResponseLog
from serving.server.response_record import ResponseRecord


class ResponseRecorder:
    """Writes requests and answers of one bundle into the log; `log` None keeps nothing."""

    def __init__(self, log: ResponseLog | None, manifest: Manifest) -> None:
        self._log, self._version, self._created = log, manifest.version, manifest.created

    def record(
        self, request: pb.RankRequest, request_id: str, status: str, answer: RankAnswer | PageAnswer | None,
        began: float,
    ) -> None:
        """`began` is `time.perf_counter` at the request's arrival; `answer` is None where it failed. Of several slates
        each is a row of its own, under REQUEST_ID/PLACEMENT."""
        if self._log is None:
            return
        if not isinstance(answer, PageAnswer):
            self._row(request.user_id, context_as_text(request.context), request_id, status, answer, began)
            return
        for placement, slate in zip(request.placements, answer.slates, strict=True):
            context = {**context_as_text(request.context), **context_as_text(placement.context)}
            self._row(request.user_id, context, f"{request_id}/{placement.name}", status, slate, began)

    def _row(
        self, user: str, context: dict[str, str], request_id: str, status: str, answer: RankAnswer | None, began: float
    ) -> None:
        assert self._log is not None
        items = answer.items if answer else []
        self._log.append(ResponseRecord(
            request_id=request_id, time=datetime.now(UTC), user=user, context=context,
            items=[item.item for item in items], positions=list(range(1, len(items) + 1)),
            scores=[item.score for item in items], probabilities=[item.probability for item in items],
            propensities=[1.0] * len(items), bundle_version=self._version, bundle_created=self._created,
            status=status, microseconds=round((time.perf_counter() - began) * 1e6),
        ))


def context_as_text(values: Mapping[str, pb.Value]) -> dict[str, str]:
    """As Spark casts text back: flags are true or false, values left empty are left out; lists
    are JSON."""
    context = {}
    for name, value in values.items():
        kind = value.WhichOneof("kind")
        if kind == "list":
            context[name] = json.dumps([_text(one, one.WhichOneof("kind")) for one in value.list.values])
        elif kind is not None:
            context[name] = _text(value, kind)
    return context


def _text(value: pb.Value, kind: str | None) -> str:
    held = getattr(value, kind) if kind else ""
    return str(held).lower() if kind == "flag" else str(held)
