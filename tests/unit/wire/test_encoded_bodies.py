"""Schemas of the OpenAPI document that are derived from encoded bodies."""

from dataclasses import dataclass

import pytest

from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.openapi_schemas.encoded_bodies import EncodedBody, schema_of


@dataclass(frozen=True)
class Case:
    """Encoded bodies, and the schema of their member `m`."""

    id: str
    bodies: tuple[bytes, ...]
    member: JsonObject


CASES = [
    Case("text", (b'{"m": "a"}', b'{"m": "b"}'), {"type": "string"}),
    Case("text or null", (b'{"m": "a"}', b'{"m": null}'), {"type": ["string", "null"]}),
    Case("integer", (b'{"m": 1}',), {"type": "integer"}),
    Case("number", (b'{"m": 1}', b'{"m": 0.5}'), {"type": "number"}),
    Case("truth value, which is no number", (b'{"m": true}',), {"type": "boolean"}),
    Case("two kinds", (b'{"m": "a"}', b'{"m": 1}'), {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
    Case("list without a known item", (b'{"m": []}',), {"type": "array", "items": {}}),
    Case("list", (b'{"m": []}', b'{"m": ["a"]}'), {"type": "array", "items": {"type": "string"}}),
    Case(
        "object, of which one member may be absent",
        (b'{"m": {"a": 1, "b": 1}}', b'{"m": {"a": 1}}'),
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a"]},
    ),
    Case(
        "object with a word of the format",
        (b'{"m": {"status": "queued"}}', b'{"m": {"status": "done"}}'),
        {
            "type": "object",
            "properties": {"status": {"type": "string", "enum": ["done", "queued"]}},
            "required": ["status"],
        },
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_schema_fits_all_samples(case: Case) -> None:
    body = EncodedBody("component", "Description.", lambda: case.bodies)
    assert schema_of(body) == {
        "type": "object",
        "properties": {"m": case.member},
        "required": ["m"],
        "description": "Description.",
    }
