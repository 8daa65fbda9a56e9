"""A call and what came of it -> the row that the response log keeps, made when the call has ended.

    OK                  the answer was sent before the call's deadline passed; the row holds it
    DEADLINE_EXCEEDED   no answer, or one that was too late: the server's failure, also where the caller's own clock has
                        ended the call, within the server's reserve of the deadline or LATE_SHARE of the time it gave
    CANCELLED           the caller hung up before that
    any other           as the caller was told

What a caller that hangs up while the answer is on its way has seen of it, nobody can know: it was sent.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from contracts.bundle.bundle import Manifest
from serving.proto import sluice_pb2 as pb
from serving.request.query import PageAnswer, RankAnswer
from serving.response_log.ledger import Served
from serving.response_log.response_log import ResponseLog
from serving.response_log.response_record import BASE_BYTES, CHARACTER_BYTES, ResponseRecord

OK, CANCELLED, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED = "OK", "CANCELLED", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED"
LATE_SHARE = 0.01  # gRPC rounds the time that a caller gives by less
HELD_ITEM_BYTES, TEXT_BYTES = 2400, 100
PROPENSITY = 1.0  # the funnel draws nothing


class CallContext(Protocol):
    """What gRPC knows of a call: the seconds left to its caller, None without a deadline."""

    def time_remaining(self) -> float | None: ...


def at_the_end(status: str, context: CallContext, late: float) -> str:
    """What has come of a call with this `status`: one that ends when its time is over, or with less than `late` seconds
    and no word from the server, has met its deadline."""
    left = context.time_remaining()
    allowed = {OK: 0.0, RESOURCE_EXHAUSTED: 0.0, CANCELLED: late}.get(status, -1.0)
    return status if left is None or left > allowed else DEADLINE_EXCEEDED


class RecordedCall:
    """One call, from its beginning to its end; CANCELLED until the servicer has said otherwise."""

    def __init__(
        self, recorder: ResponseRecorder, request: pb.RankRequest, request_id: str, reserve: float, context: CallContext
    ) -> None:
        self._recorder, self._request, self._request_id = recorder, request, request_id
        left = context.time_remaining()
        self._late = -1.0 if left is None else max(reserve, LATE_SHARE * left)
        self._began, self._spent = time.perf_counter(), 0.0
        self._status = CANCELLED
        self._answer: RankAnswer | PageAnswer | None = None
        self._answered_at: datetime | None = None

    def failed(self, status: str) -> None:
        """The caller is told so."""
        self._status = status

    def refused(self, status: str, request: pb.RankRequest, request_id: str) -> None:
        """The same, of a request that is logged as far as these go."""
        self._status, self._request, self._request_id = status, request, request_id

    def answered(self, answer: RankAnswer | PageAnswer) -> None:
        """It is about to be sent."""
        self._status, self._answer = OK, answer
        self._answered_at = datetime.now(UTC)  # no click on it can be earlier
        self._spent = time.perf_counter() - self._began

    @property
    def outcome(self) -> tuple[str, float, RankAnswer | PageAnswer | None]:
        """Status, seconds and the answer that was sent in time; of a call that has ended."""
        return self._status, self._spent, self._answer if self._status == OK else None

    def ended(self, context: CallContext) -> None:
        """gRPC is done with it: sent, or given up."""
        self._status = at_the_end(self._status, context, self._late)
        self._spent = self._spent or time.perf_counter() - self._began
        status, spent, answer = self.outcome
        when = self._answered_at or datetime.now(UTC)
        self._recorder.record(self._request, self._request_id, status, answer, round(spent * 1e6), when)


@dataclass(slots=True, kw_only=True)
class HeldAnswer:
    """An answer until the log's thread makes a row of it: the event loop has better things to do."""

    request_id: str
    time: datetime
    user: str
    context: dict[str, str]
    context_lists: dict[str, list[str]]
    answer: RankAnswer | None
    bundle: Served
    status: str
    microseconds: int
    calls: int

    @property
    def size(self) -> int:
        """Bytes of memory that it may take at most, with the answer that it keeps."""
        text = len(self.request_id) + len(self.user)
        for name, value in self.context.items():
            text += TEXT_BYTES + len(name) + len(value)
        for values in self.context_lists.values():
            text += sum(TEXT_BYTES + len(value) for value in values)
        items = len(self.answer.items) if self.answer else 0
        return BASE_BYTES + CHARACTER_BYTES * text + HELD_ITEM_BYTES * items

    def row(self) -> ResponseRecord:
        """As it is logged."""
        items, stages = (self.answer.items, self.answer.stages) if self.answer else ((), ())
        sold = [item.sold for item in items]
        return ResponseRecord(
            request_id=self.request_id, time=self.time, user=self.user, context=self.context,
            items=[item.item for item in items], positions=list(range(1, len(items) + 1)),
            scores=[item.score for item in items], probabilities=[item.probability for item in items],
            propensities=[PROPENSITY] * len(items), bundle_version=self.bundle.version,
            bundle_created=self.bundle.created, status=self.status, microseconds=self.microseconds, calls=self.calls,
            context_lists=self.context_lists, prices=[one.price if one else None for one in sold],
            bids=[one.bid if one else None for one in sold],
            runner_ups=[one.runner_up if one else None for one in sold],
            to_beat=[one.to_beat if one else None for one in sold], channels=[item.channel for item in items],
            degraded=self.answer.degraded if self.answer else False, stages=[stage.name for stage in stages],
            stage_statuses=[stage.status.value for stage in stages],
            stage_fallbacks=[stage.fallback.value for stage in stages], stage_causes=[stage.cause for stage in stages],
            stage_microseconds=[stage.microseconds for stage in stages],
        )


class ResponseRecorder:
    """Writes calls and answers of one bundle into the log; `log` None keeps nothing."""

    def __init__(self, log: ResponseLog | None, manifest: Manifest) -> None:
        self._log, self._bundle = log, Served(manifest.version, manifest.created)

    def begin(self, request: pb.RankRequest, request_id: str, reserve: float, context: CallContext) -> RecordedCall:
        """`reserve` seconds of a deadline are not for work."""
        if self._log is not None:
            self._log.enter()
        return RecordedCall(self, request, request_id, reserve, context)

    def unread(self, status: str, reserve: float, context: CallContext) -> None:
        """A call that ended before its request was read."""
        if self._log is not None:
            self._log.count(at_the_end(status, context, reserve))

    def refused(self, calls: int) -> None:
        """So many, before anything was known of them."""
        if self._log is not None:
            self._log.count(RESOURCE_EXHAUSTED, calls)

    def record(
        self, request: pb.RankRequest, request_id: str, status: str, answer: RankAnswer | PageAnswer | None,
        microseconds: int, when: datetime,
    ) -> None:
        """Of several slates each is a row of its own, under REQUEST_ID/PLACEMENT, and the first stands for the call."""
        if self._log is None:
            return
        if not isinstance(answer, PageAnswer):
            self._hold(request.user_id, request.context, request_id, status, answer, microseconds, when, 1)
            return
        for number, (placement, slate) in enumerate(zip(request.placements, answer.slates, strict=True)):
            placed = {**request.context, **placement.context}
            self._hold(request.user_id, placed, f"{request_id}/{placement.name}", status, slate, microseconds,
                       when, int(number == 0))

    def _hold(
        self, user: str, context: Mapping[str, pb.Value], request_id: str, status: str, answer: RankAnswer | None,
        microseconds: int, when: datetime, calls: int,
    ) -> None:
        assert self._log is not None
        self._log.append(HeldAnswer(
            request_id=request_id, time=when, user=user, context=context_as_text(context),
            context_lists=lists_as_text(context), answer=answer, bundle=self._bundle, status=status,
            microseconds=microseconds, calls=calls), entered=True)


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


def lists_as_text(values: Mapping[str, pb.Value]) -> dict[str, list[str]]:
    """Of the fields that were given several values."""
    return {name: [_text(one, one.WhichOneof("kind")) for one in value.list.values]
            for name, value in values.items() if value.HasField("list")}


def _text(value: pb.Value, kind: str | None) -> str:
    held = getattr(value, kind) if kind else ""
    return str(held).lower() if kind == "flag" else str(held)
