from __future__ import annotations

import logging

import pytest
from google.rpc import code_pb2, error_details_pb2

from contracts.errors import RequestError
from serving.admission.admission import Overloaded
from serving.request.deadline import DeadlineExpired
from serving.request.message_bounds import OutOfBounds
from serving.server.statuses import Stopping, status_of


@pytest.mark.parametrize(("error", "code"), [
    (DeadlineExpired("too late"), "DEADLINE_EXCEEDED"), (Overloaded("too much"), "RESOURCE_EXHAUSTED"),
    (Stopping("not here"), "UNAVAILABLE")])
def test_whose_fault_it_is(error: Exception, code: str, caplog: pytest.LogCaptureFixture) -> None:
    status = status_of(error, "mine", {})
    assert (code_pb2.Code.Name(status.code), status.message) == (code, str(error))
    assert not caplog.records


@pytest.mark.parametrize("error", [RequestError("limit", "is 0"), OutOfBounds("limit", "is 0")])
def test_the_callers_fault_names_the_field(error: RequestError) -> None:
    status, bad = status_of(error, "mine", {}), error_details_pb2.BadRequest()
    assert (status.code, status.message) == (code_pb2.INVALID_ARGUMENT, str(error))
    assert status.details[0].Unpack(bad)
    assert [(one.field, one.description) for one in bad.field_violations] == [("limit", "is 0")]


def test_the_servers_own_fault_is_told_to_its_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    status = status_of(ZeroDivisionError("a secret"), "mine\n", {})
    assert status.code == code_pb2.INTERNAL
    assert "secret" not in str(status)
    [record] = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.ERROR, "request 'mine\\n' failed")
    assert "a secret" in str(record.exc_info)
