"""What is told of a call that failed: gRPC's status, with the field where the caller is at fault."""

from __future__ import annotations

import logging

from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2

from contracts.errors import RequestError, SluiceError
from contracts.logs import fields
from contracts.shown import short, shown
from serving.admission.admission import Overloaded
from serving.metrics.request_observer import Caller, trace_of
from serving.request.deadline import DeadlineExpired

log = logging.getLogger("sluice.serving")


class Stopping(SluiceError):
    """The server takes no more requests."""


def status_of(error: Exception, request_id: str, caller: Caller) -> status_pb2.Status:
    """What the caller is told; the cause of a failure of the server's own is in its log alone."""
    if isinstance(error, RequestError):
        return _invalid(error)
    if isinstance(error, DeadlineExpired):
        return status_pb2.Status(code=code_pb2.DEADLINE_EXCEEDED, message=str(error))
    if isinstance(error, Overloaded):
        return status_pb2.Status(code=code_pb2.RESOURCE_EXHAUSTED, message=str(error))
    if isinstance(error, Stopping):
        return status_pb2.Status(code=code_pb2.UNAVAILABLE, message=str(error))
    about = fields(request_id=short(request_id), trace_id=trace_of(caller))
    log.error("request %s failed", shown(request_id), exc_info=error, extra=about)
    return status_pb2.Status(code=code_pb2.INTERNAL, message="the ranking failed; the server's log has the cause")


def _invalid(error: RequestError) -> status_pb2.Status:
    violation = error_details_pb2.BadRequest.FieldViolation(field=error.field, description=error.problem)
    detail = any_pb2.Any()
    detail.Pack(error_details_pb2.BadRequest(field_violations=[violation]))
    return status_pb2.Status(code=code_pb2.INVALID_ARGUMENT, message=str(error), details=[detail])
