"""The description has every method, every message and every field of the proto, and what it says is taken."""

from __future__ import annotations

import json
from typing import Any

from serving.gateway.openapi import description
from serving.proto import sluice_pb2 as pb

MADE = description(list(pb.DESCRIPTOR.services_by_name.values()), "1.2.3")
SCHEMAS = MADE["components"]["schemas"]


def references(part: Any) -> set[str]:
    if isinstance(part, dict):
        return {part["$ref"]} if "$ref" in part else set().union(*(references(one) for one in part.values()), set())
    return set().union(*(references(one) for one in part), set()) if isinstance(part, list) else set()


def test_every_method_is_a_post() -> None:
    assert set(MADE["paths"]) == {
        "/v1/rank", "/v1/score", "/v1/why-not", "/v1/events", "/v1/catalog/upsert", "/v1/catalog/withdraw",
        "/v1/catalog/set-bids", "/v1/catalog/set-stock", "/v1/catalog/status"}
    assert all(set(path) == {"post"} for path in MADE["paths"].values())
    names = [path["post"]["operationId"] for path in MADE["paths"].values()]
    assert len(set(names)) == len(names)


def test_a_body_is_an_object_even_of_one_list_and_times_are_text() -> None:
    body = MADE["paths"]["/v1/events"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body == {"$ref": "#/components/schemas/RecordEventsRequest"}
    assert SCHEMAS["RecordEventsRequest"]["properties"]["events"]["items"] == {"$ref": "#/components/schemas/Event"}
    assert SCHEMAS["Change"]["properties"]["event_time"] == {"type": "string", "format": "date-time"}


def test_every_field_of_request_and_answer_is_there() -> None:
    for message in (pb.RankRequest, pb.RankResponse, pb.ScoreRequest, pb.ScoreResponse, pb.RankedItem, pb.Placement,
                    pb.Event, pb.RecordEventsResponse, pb.ItemUpsert, pb.ChangeResult, pb.CatalogStatus):
        fields = {field.name for field in message.DESCRIPTOR.fields}
        assert set(SCHEMAS[message.DESCRIPTOR.name]["properties"]) == fields


def test_every_reference_leads_somewhere_and_it_is_json() -> None:
    assert {name.rsplit("/", 1)[1] for name in references(MADE)} <= set(SCHEMAS)
    assert json.loads(json.dumps(MADE)) == MADE


def test_kinds_are_those_of_the_proto() -> None:
    asked = SCHEMAS["RankRequest"]["properties"]
    assert asked["user_id"] == {"type": "string"}
    assert asked["limit"] == {"type": "integer"}
    assert asked["skip_reasons"] == {"type": "boolean", "deprecated": True}
    assert asked["candidate_list"] == {"type": "array", "items": {"type": "string"}}
    assert asked["filters"]["additionalProperties"] == {"type": "array", "items": {"type": "string"}}
    assert "COMPLETE" in SCHEMAS["StageReport"]["properties"]["status"]["enum"]
