"""OpenAPI document of the HTTP API, generated from the table of routes, the types of bodies and the proto schema."""

from collections.abc import Iterable
from functools import cache
from importlib.metadata import version

import msgspec

from http_facade.exchange.caller_credentials import key_headers, key_parameter
from http_facade.openapi.bodies_and_responses import Responses
from http_facade.openapi.call_examples import example_of, with_example
from http_facade.openapi.error_components import ErrorResponses
from http_facade.openapi.member_sentences import with_sentences
from http_facade.openapi.operation_texts import operation_of
from http_facade.openapi.parameters import parameters
from http_facade.openapi.rpc_operations import Methods, methods_of
from http_facade.routes import PAGE_SHAPES, ROUTE_TABLE, Route, Shape
from umg_grpc.operations.wire_formats_by_name import unary_operation
from umg_grpc.v1.comments import comments
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.openapi_schemas.struct_schemas import StructSchemas

DISTRIBUTION_NAME = "unified-model-gateway"
API_DESCRIPTION = """\
One service in front of every AI model provider. Official clients call it with another base URL and key.

Bodies are those of the wire formats, and objects are open: members that are not listed are passed on to a provider of
the same format. An explicit null is the same as an absent member. Native bodies are accepted in camel case and in snake
case. Paths of videos and images are also served with a slash at their end.
"""
BEARER_SCHEME, METRICS_KEY = "bearer", "metrics"


@cache
def document_json() -> bytes:
    """Return the OpenAPI document as JSON text, generated at the first call."""
    return msgspec.json.encode(document())


def document() -> JsonObject:
    """Return the OpenAPI document as a JSON object."""
    schemas, responses = JsonObject(), JsonObject()
    types = StructSchemas(schemas)
    errors = ErrorResponses(responses, types)
    received, methods = Responses(schemas, types, errors), Methods(schemas, errors)
    paths: dict[str, JsonObject] = {}
    for route in documented(ROUTE_TABLE):
        if route.shape is Shape.CALL_METHOD:
            for method in methods_of(route):
                operation = methods.operation(route, method)
                paths[route.path.replace("{rpc}", method.name)] = {"post": operation | _security(route)}
        else:
            paths.setdefault(route.name, {})[route.method.lower()] = _operation(route, received) | _security(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Unified Model Gateway",
            "version": version(DISTRIBUTION_NAME),
            "description": API_DESCRIPTION,
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name} for name in dict.fromkeys(operation_of(row).tag for row in documented(ROUTE_TABLE))],
        "paths": paths,
        "components": {
            "schemas": with_sentences(dict(sorted(schemas.items()))),
            "responses": dict(sorted(responses.items())),
            "securitySchemes": _schemes(),
        },
    }


def documented(rows: Iterable[Route]) -> Iterable[Route]:
    """Return the routes of the OpenAPI document: all except web pages and variants with a trailing slash."""
    return (row for row in rows if row.shape not in PAGE_SHAPES and not (row.path.endswith("/") and row.path != "/"))


def _operation(route: Route, responses: Responses) -> JsonObject:
    row = operation_of(route)
    body, example = responses.request_body(route), example_of(route)
    return {
        "tags": [row.tag],
        "summary": row.summary,
        "description": comments().get(f"umg.v1.{row.method}", "") if row.method else row.description,
        "operationId": operation_id(route),
        "parameters": [with_example(parameter, example) for parameter in parameters(route)],
        **({"requestBody": body} if body is not None else {}),
        "responses": responses.responses(route),
    }


def operation_id(route: Route) -> str:
    """Return the OpenAPI operation id of a route, composed of its kind of operation and its path."""
    words = "".join(character if character.isalnum() else " " for character in route.name).split()
    kind = unary_operation(route.format).name if route.shape is Shape.UNARY else route.shape.name.lower()
    return "_".join([kind, *words])


def _security(route: Route) -> JsonObject:
    if route.shape is Shape.METRICS:
        return {"security": [{METRICS_KEY: []}, {}]}
    if not route.needs_key:
        return {"security": []}
    names = [BEARER_SCHEME, *key_headers(route.format)]
    if parameter := key_parameter(route.format):
        names.append(f"query-{parameter}")
    return {"security": [{name: []} for name in names]}


def _schemes() -> JsonObject:
    """Return the OpenAPI security schemes by name: `Authorization`, and key headers and parameters of the formats."""
    faces = dict.fromkeys(row.format for row in ROUTE_TABLE if row.needs_key)
    headers = dict.fromkeys(name for face in faces for name in key_headers(face))
    queries = dict.fromkeys(name for face in faces if (name := key_parameter(face)))
    return {
        BEARER_SCHEME: {"type": "http", "scheme": "bearer", "description": "A key of the gateway."},
        METRICS_KEY: {"type": "http", "scheme": "bearer", "description": "`metrics.key` of the config, if it has one."},
        **{name: {"type": "apiKey", "in": "header", "name": name} for name in headers},
        **{f"query-{name}": {"type": "apiKey", "in": "query", "name": name} for name in queries},
    }
