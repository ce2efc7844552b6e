"""The OpenAPI 3.1 document, made from the table of routes and the shapes they name."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from betimes.api.accepting import ANYTHING
from betimes.api.codes import CODES
from betimes.api.problem import MEDIA_TYPE
from betimes.api.route import FIELDS, VALIDATE_ONLY, Keyed, Load, Route, reason_of
from betimes.domain.event import CATALOGUE, EventType
from betimes.wire.problem import Problem

REF = "#/components/schemas/{name}"
ALWAYS = ("internal", "overloaded", "database_unavailable", "upstream_timeout", "request_timeout")
WITH_KEY = (
    *("missing_credentials", "invalid_credentials", "scope_missing", "rate_limited"),
    *("invalid_parameter", "draining", "not_found"),
)
WITH_BODY = (
    *("malformed_json", "unknown_field", "invalid_parameter", "payload_too_large"),
    *("unsupported_media_type", "quota_exceeded"),
)
WITH_KEYED = ("idempotency_key_invalid", "idempotency_in_progress", "idempotency_key_reused")
FAMILIES = {
    "invalid_schedule": (
        *("unknown_timezone", "schedule_never_fires", "schedule_too_frequent", "time_in_past"),
        *("ambiguous_text", "invalid_rrule", "schedule_too_expensive"),
    ),
}
NO_CONTENT = frozenset({204, 304})
DESCRIPTIONS = {
    "ETag": "The revision of the definition.",
    "Location": "Where what was made can be read.",
    "Link": "The next page.",
}


def document(routes: Sequence[Route], *, version: str) -> dict[str, Any]:
    """The whole document."""
    shapes = _Shapes(routes)
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, shapes)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Betimes",
            "version": version,
            "summary": "A distributed, multi-tenant job scheduler.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "servers": [{"url": "/"}],
        "security": [{"key": []}],
        "tags": [{"name": tag} for tag in sorted({route.tag for route in routes})],
        "paths": paths,
        "webhooks": {name: _webhook(one) for name, one in CATALOGUE.items()},
        "components": {
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer", "bearerFormat": "btm_sk_…"}
            },
            "schemas": shapes.components,
        },
    }


def _webhook(event: EventType) -> dict[str, Any]:
    """What an endpoint is sent for a type of event."""
    envelope = {
        "specversion": "1.0",
        "id": "evt_01JD8Q0W0G8S0B3T1N5Y6Z7A8B",
        "source": "urn:betimes:tenant:ten_00000000008G00000000000001",
        "type": event.name,
        "time": "2026-01-01T00:00:00.000000Z",
        "datacontenttype": "application/json",
        "severity": event.severity.name.lower(),
        "data": dict(event.example),
    }
    texts = {name: {"type": "string"} for name in envelope if name != "data"}
    schema = {
        "type": "object",
        "required": ["specversion", "id", "source", "type", "data"],
        "properties": {**texts, "type": {"const": event.name}, "data": {"type": "object"}},
    }
    return {
        "post": {
            "operationId": f"webhooks.{event.name}",
            "summary": event.says,
            "requestBody": {
                "required": True,
                "content": {
                    "application/cloudevents+json": {"schema": schema, "example": envelope}
                },
            },
            "responses": {
                "2XX": {"description": "Received; anything else is sent again."},
                "410": {"description": "Nothing more is sent to the endpoint."},
            },
        }
    }


def problems_of(route: Route) -> list[str]:
    """Every code a route may answer."""
    found = {*ALWAYS, *route.problems}
    if not route.is_public:
        found |= set(WITH_KEY)
    if route.body is not None:
        found |= set(WITH_BODY)
    if route.offers and route.offers[0] != ANYTHING:
        found.add("not_acceptable")
    if route.keyed is not Keyed.NO:
        found |= set(WITH_KEYED)
    if route.keyed is Keyed.REQUIRED:
        found.add("idempotency_key_required")
    found |= {"unknown_parameter", "invalid_parameter"}
    for family, members in FAMILIES.items():
        if family in found:
            found |= set(members)
    if route.load is Load.FREE:
        found -= {"overloaded", "database_unavailable", "draining"}
    else:
        found.add("draining")
    if route.load is Load.VITAL:
        found -= {"overloaded"}
    return sorted(found)


class _Shapes:
    """The schemas of all shapes, by name."""

    def __init__(self, routes: Iterable[Route]) -> None:
        kinds: list[Any] = [Problem]
        for route in routes:
            kinds.append(route.query)
            if route.body not in (None, bytes):
                kinds.append(route.body)
            kinds += [kind for kind in route.answers.values() if kind not in (None, bytes, str)]
        unique = list({repr(kind): kind for kind in kinds}.values())
        schemas, self.components = msgspec.json.schema_components(unique, ref_template=REF)
        self._schemas = {repr(kind): schema for kind, schema in zip(unique, schemas, strict=True)}

    def of(self, kind: Any) -> dict[str, Any]:
        if kind is str:
            return {"type": "string"}
        if kind is bytes:
            return {}
        return self._schemas[repr(kind)]

    def properties(self, kind: Any) -> tuple[dict[str, Any], list[str]]:
        name = self._schemas[repr(kind)]["$ref"].rpartition("/")[2]
        schema = self.components[name]
        return schema.get("properties", {}), schema.get("required", [])


def _operation(route: Route, shapes: _Shapes) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.says,
        "tags": [route.tag],
        "parameters": _parameters(route, shapes),
        "responses": _responses(route, shapes),
    }
    if route.retired is not None:
        operation["deprecated"] = True
    if route.is_public:
        operation["security"] = []
    elif route.by_lease:
        # Either a key, or the token of a target, which is in the path.
        operation["security"] = [{"key": []}, {}]
    else:
        operation["x-scope"] = str(route.scope)
    if route.body is not None:
        content: dict[str, Any] = {"schema": shapes.of(route.body)}
        if route.example is not None:
            content["example"] = route.example
        operation["requestBody"] = {
            "required": not route.body_optional,
            "content": {route.media: content},
        }
    return operation


def _parameters(route: Route, shapes: _Shapes) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1, "maxLength": 512},
        }
        for name in route.parameters
    ]
    properties, required = shapes.properties(route.query)
    for name, schema in properties.items():
        entry = {"name": name, "in": "query", "required": name in required, "schema": schema}
        if schema.get("type") == "array":
            entry |= {"style": "form", "explode": False}
        found.append(entry)
    if route.selects:
        found.append(
            {
                "name": FIELDS,
                "in": "query",
                "required": False,
                "description": "The members to show.",
                "schema": {"type": "array", "items": {"type": "string"}},
                "style": "form",
                "explode": False,
            }
        )
    if route.tries:
        found.append(
            {
                "name": VALIDATE_ONLY,
                "in": "query",
                "required": False,
                "description": "Check everything and keep nothing.",
                "schema": {"type": "boolean", "default": False},
            }
        )
    found += [
        {
            "name": name,
            "in": "header",
            "required": False,
            "description": says,
            "schema": {"type": "string"},
        }
        for name, says in route.sends.items()
    ]
    if route.keyed is not Keyed.NO:
        found.append(
            {
                "name": "Idempotency-Key",
                "in": "header",
                "required": False,
                "description": "Required, here or as `idempotencyKey` where the body has it."
                if route.keyed is Keyed.REQUIRED
                else "Makes a repetition of the request harmless.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 255},
            }
        )
    return found


def _responses(route: Route, shapes: _Shapes) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for status, kind in sorted(route.answers.items()):
        entry: dict[str, Any] = {"description": reason_of(status)}
        if status not in NO_CONTENT and kind is not None:
            usual, *others = route.offers
            entry["content"] = {usual: {"schema": shapes.of(kind)}}
            entry["content"] |= {media: {"schema": {"type": "string"}} for media in others}
        if route.headers:
            entry["headers"] = {
                name: {
                    "description": DESCRIPTIONS.get(name, name),
                    "schema": {"type": "string"},
                }
                for name in route.headers
            }
        responses[str(status)] = entry
    by_status: dict[int, list[str]] = {}
    for code in problems_of(route):
        by_status.setdefault(CODES[code].status, []).append(code)
    for status, codes in sorted(by_status.items()):
        content = {MEDIA_TYPE: {"schema": {"$ref": REF.format(name="Problem")}}}
        told = responses.setdefault(str(status), {"description": reason_of(status)})
        told.setdefault("content", {}).update(content)
        told["x-codes"] = codes
    return responses
