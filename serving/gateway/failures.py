"""What a caller over HTTP is told when a call fails: a status, and one JSON object with gRPC's word for it.

    {"error": {"status": "INVALID_ARGUMENT", "message": "...", "fields": {"limit": "..."}}}
"""

from __future__ import annotations

from http import HTTPStatus

import grpc
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from starlette.responses import JSONResponse

from serving.gateway.body import NotTaken, TooSlow

HTTP = {
    "INVALID_ARGUMENT": 400, "OUT_OF_RANGE": 400, "FAILED_PRECONDITION": 400, "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403, "NOT_FOUND": 404, "ABORTED": 409, "ALREADY_EXISTS": 409, "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499, "UNIMPLEMENTED": 501, "UNAVAILABLE": 503, "DEADLINE_EXCEEDED": 504,
}
TRY_AGAIN = {429, 503}  # with a second's patience, or elsewhere


def refused(status: str, message: str, fields: dict[str, str] | None = None, http: int | None = None) -> JSONResponse:
    code = http or HTTP.get(status, 500)
    error = {"status": status, "message": message, **({"fields": fields} if fields else {})}
    return JSONResponse({"error": error}, code, headers={"Retry-After": "1"} if code in TRY_AGAIN else None)


def over_the_wire(status: str, message: str, http: int) -> bytes:
    """The same where there is no request that could be answered; nothing follows it."""
    answer = refused(status, message, http=http)
    answer.headers["Connection"] = "close"
    head = b"".join(b"%b: %b\r\n" % one for one in answer.raw_headers)
    return b"HTTP/1.1 %d %b\r\n" % (http, HTTPStatus(http).phrase.encode()) + head + b"\r\n" + bytes(answer.body)


def of_body(error: NotTaken) -> JSONResponse:
    """After one that came too slowly the connection is not used again."""
    answer = refused(error.status, str(error), http=error.http)
    if isinstance(error, TooSlow):
        answer.headers["Connection"] = "close"
    return answer


def of_call(error: grpc.aio.AioRpcError | grpc.RpcError) -> JSONResponse:
    """The server's own words, with the fields that it found wrong."""
    fields: dict[str, str] = {}
    status = rpc_status.from_call(error)  # type: ignore[arg-type]  # it has the trailing metadata that this reads
    for detail in status.details if status else ():
        bad = error_details_pb2.BadRequest()
        if detail.Unpack(bad):
            fields |= {one.field: one.description for one in bad.field_violations}
    return refused(error.code().name, error.details() or "", fields)
