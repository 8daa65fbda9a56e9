"""The API's description as a page: no script, nothing fetched from elsewhere."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from serving.gateway.openapi import Schema

STYLE = """
:root { color-scheme: light dark; font-family: system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; line-height: 1.5; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid; border-radius: .4rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top; }
"""
ASKER, ITEMS = {"user_id": "u_00017", "context": {"device": "phone"}}, {"item_ids": ["i_1", "i_2"]}
CHANGE = {"item_id": "i_1", "version": 1}
CLICK = {"event_id": "c1", "kind": "CLICK", "user_id": "u_00017", "item_id": "i_1", "request_id": "r1"}
EXAMPLES: dict[str, Any] = {
    "Rank": {**ASKER, "limit": 5}, "Score": {**ASKER, **ITEMS}, "WhyNot": {"request": ASKER, **ITEMS},
    "RecordEvents": {"events": [CLICK]}, "Upsert": {"items": [{"change": CHANGE, "values": {"format": "video"}}]},
    "Withdraw": {"items": [CHANGE]}, "SetBids": {"items": [{"change": CHANGE, "bid": 0.5}]},
    "SetStock": {"items": [{"change": CHANGE, "stock": 3}]}, "Status": {}}


def page(described: Schema) -> str:
    """HTML."""
    schemas = described["components"]["schemas"]
    methods = "".join(_method(path, post["post"]) for path, post in described["paths"].items())
    tables = "".join(_table(name, schema) for name, schema in schemas.items())
    title = escape(described["info"]["title"])
    return (f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>'
            f'<h1>{title}</h1><p>Version {escape(described["info"]["version"])}. For programs: '
            f'<a href="/openapi.json">openapi.json</a>. The server behind this page: <a href="/readyz">readyz</a>.</p>'
            f"{methods}<h2>Messages</h2>{tables}</body></html>")


def _method(path: str, operation: Schema) -> str:
    rows = "".join(f"<tr><th>{code}</th><td>{escape(answer['description'])}</td></tr>"
                   for code, answer in operation["responses"].items())
    body = EXAMPLES[operation["operationId"]]
    shown = f"curl -s http://HOST:PORT{path} -H 'Grpc-Timeout: 100m' -d '{json.dumps(body)}'"
    return f"<h2>POST {escape(path)}</h2><pre>{escape(shown)}</pre><table>{rows}</table>"


def _table(name: str, schema: Schema) -> str:
    rows = "".join(f"<tr><th>{escape(field)}</th><td>{_shown(held)}</td></tr>"
                   for field, held in schema["properties"].items())
    return f'<h3 id="{escape(name)}">{escape(name)}</h3><table>{rows}</table>'


def _shown(held: Schema) -> str:
    """Its type in words; a message is a link."""
    if "$ref" in held:
        name = escape(held["$ref"].rsplit("/", 1)[1])
        return f'<a href="#{name}">{name}</a>'
    if "description" in held:
        return escape(held["description"])
    if held["type"] == "array":
        return f"list of {_shown(held['items'])}"
    if held["type"] == "object" and "additionalProperties" in held and held["additionalProperties"]:
        return f"by name: {_shown(held['additionalProperties'])}"
    if "enum" in held:
        return escape(", ".join(held["enum"]))
    kinds = held["type"] if isinstance(held["type"], list) else [held["type"]]
    return escape(" or ".join(kind for kind in kinds if kind != "null"))
