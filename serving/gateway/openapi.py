"""The description of the HTTP API (OpenAPI 3.1), made from the proto's own descriptors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor, ServiceDescriptor

from serving.gateway.json_messages import TIMESTAMP, VALUE, is_map, listed_field

Schema = dict[str, Any]
SCALARS: dict[int, Schema] = {
    FieldDescriptor.TYPE_STRING: {"type": "string"}, FieldDescriptor.TYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.TYPE_DOUBLE: {"type": ["number", "null"]}, FieldDescriptor.TYPE_FLOAT: {"type": ["number", "null"]},
}
ERROR: Schema = {
    "type": "object",
    "properties": {"error": {"type": "object", "required": ["status", "message"], "properties": {
        "status": {"type": "string", "description": "gRPC's name of it"}, "message": {"type": "string"},
        "fields": {"type": "object", "additionalProperties": {"type": "string"}}}}},
}
FAILURES = {"400": "the request cannot be answered as asked", "401": "no valid token", "403": "not for this caller",
            "408": "the body did not come in time", "413": "the body is too large",
            "429": "the server has too much to do; send it again later or elsewhere",
            "503": "the server is stopping or not there", "504": "there was no time for an answer"}


PLACES = {"Ranking": "/v1/{method}", "Events": "/v1/events", "Catalog": "/v1/catalog/{method}"}


def path_of(method: MethodDescriptor) -> str:
    """WhyNot is /v1/why-not, SetBids /v1/catalog/set-bids, RecordEvents /v1/events."""
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", method.name).lower()
    return PLACES[method.containing_service.name].format(method=name)


def description(services: Sequence[ServiceDescriptor], version: str) -> Schema:
    """Every method of the services as a POST; messages become schemas by their names."""
    schemas: dict[str, Schema] = {"Error": ERROR}
    paths = {path_of(method): {"post": _operation(method, schemas)}
             for service in services for method in service.methods}
    return {"openapi": "3.1.0", "info": {"title": services[0].file.package, "version": version}, "paths": paths,
            "components": {"schemas": schemas}}


def _operation(method: MethodDescriptor, schemas: dict[str, Schema]) -> Schema:
    answers = {"200": _content("an answer", _object(method.output_type, schemas))}
    answers |= {code: _content(why, {"$ref": "#/components/schemas/Error"}) for code, why in FAILURES.items()}
    timeout = {"name": "Grpc-Timeout", "in": "header", "required": False, "schema": {"type": "string"},
               "description": "the caller's deadline, as in 50m (milliseconds) or 2S"}
    body = {"required": True, "content": _json(_object(method.input_type, schemas))}
    return {"operationId": method.name, "parameters": [timeout], "requestBody": body, "responses": answers}


def _message(message: Descriptor, schemas: dict[str, Schema]) -> Schema:
    """A reference to it, which is described along the way."""
    if message.full_name == VALUE:
        return {"description": "text, a number, true or false, or a list of these",
                "type": ["string", "number", "boolean", "array"]}
    if message.full_name == TIMESTAMP:
        return {"type": "string", "format": "date-time"}
    listed = listed_field(message)
    if listed is not None:
        return {"type": "array", "items": _one(listed, schemas)}
    return _object(message, schemas)


def _object(message: Descriptor, schemas: dict[str, Schema]) -> Schema:
    """As a body is, which has names even for a list."""
    if message.name not in schemas:
        schemas[message.name] = {}  # before its fields, which may lead back to it
        properties = {field.name: _field(field, schemas) for field in message.fields}
        schemas[message.name] = {"type": "object", "additionalProperties": False, "properties": properties}
    return {"$ref": f"#/components/schemas/{message.name}"}


def _field(field: FieldDescriptor, schemas: dict[str, Schema]) -> Schema:
    made: Schema
    if is_map(field):
        made = {"type": "object", "additionalProperties": _one(field.message_type.fields_by_name["value"], schemas)}
    elif field.is_repeated:
        made = {"type": "array", "items": _one(field, schemas)}
    else:
        made = _one(field, schemas)
    return {**made, "deprecated": True} if field.GetOptions().deprecated else made


def _one(field: FieldDescriptor, schemas: dict[str, Schema]) -> Schema:
    if field.message_type is not None:
        return _message(field.message_type, schemas)
    if field.enum_type is not None:
        return {"type": "string", "enum": [value.name for value in field.enum_type.values]}
    return SCALARS.get(field.type, {"type": "integer"})


def _content(why: str, schema: Schema) -> Schema:
    return {"description": why, "content": _json(schema)}


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}
