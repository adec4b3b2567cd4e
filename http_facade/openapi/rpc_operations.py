"""Builder of the OpenAPI operations of RPCs for the Connect protocol; `openapi_document` builds those of all other HTTP
paths from the table in `operation_texts`.
"""

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import Default

from http_facade.connect.connect_protocol import CONNECT_STREAMS, TIMEOUT_HEADER, VERSION_HEADER
from http_facade.openapi.call_examples import example_of_method
from http_facade.openapi.error_components import ErrorResponses
from http_facade.openapi.operation_texts import operation_of
from http_facade.routes import Route
from umg_grpc.v1.comments import comments
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.openapi_schemas.protobuf_message_schemas import ProtoJsonSchemas

JSON_TYPE, PROTO_TYPE = "application/json", "application/proto"
_STREAM = (
    "Envelopes of the Connect protocol: a byte of flags, the length in four bytes, the message. "
    "`x-message-schema` is the schema of a message in JSON; the last envelope has the error of a failed call."
)
_HEADERS: tuple[JsonObject, ...] = (
    {
        "name": VERSION_HEADER,
        "in": "header",
        "schema": {"type": "string", "enum": ["1"]},
        "description": "Version of the Connect protocol: `1`.",
    },
    {
        "name": TIMEOUT_HEADER,
        "in": "header",
        "schema": {"type": "string", "pattern": "^[0-9]{1,10}$"},
        "description": "Longest time of the call, in milliseconds.",
    },
)


def methods_of(route: Route) -> list[MethodDescriptor]:
    """Return the RPCs of the gRPC service in the path of a route, each of which is one operation of the document."""
    return list(Default().FindServiceByName(route.path.split("/")[1]).methods)


class Methods:
    """Builder of the OpenAPI operations of RPCs."""

    def __init__(self, schemas: JsonObject, errors: ErrorResponses) -> None:
        """Create a builder that adds the messages' schemas to `schemas`, the components of the document."""
        self._messages = ProtoJsonSchemas(schemas)
        self._errors = errors

    def operation(self, route: Route, method: MethodDescriptor) -> JsonObject:
        """Return the OpenAPI operation of an RPC: a POST to the route's path with the RPC's name. A streaming RPC has
        no error statuses: its errors are in the last envelope.
        """
        row = operation_of(route)
        request, response = self._messages.schema(method.input_type), self._messages.schema(method.output_type)
        content = _envelopes if method.server_streaming else _bodies
        statuses = [] if method.server_streaming else sorted(set(row.errors) - {415})
        failed = {str(status): self._errors.response(route.error_format, status) for status in statuses}
        unsupported = {
            "description": "Another content type.",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        }
        return {
            "tags": [row.tag],
            "summary": f"{method.containing_service.name}.{method.name}",
            "description": comments().get(method.full_name, ""),
            "operationId": f"{method.containing_service.name}_{method.name}",
            "parameters": [*_HEADERS],
            "requestBody": {"required": True, "content": _with_example(content(request), method)},
            "responses": {
                "200": {"description": "Success.", "content": content(response)},
                **failed,
                "415": unsupported,
            },
        }


def _with_example(content: JsonObject, method: MethodDescriptor) -> JsonObject:
    """Return the content of a request with an example of its JSON. That of a stream is the message in the envelope."""
    example = example_of_method(method).body
    return {
        kind: {**described, "example": example} if kind.endswith("json") and example is not None else described
        for kind, described in content.items()
        if isinstance(described, dict)
    }


def _bodies(message: JsonObject) -> JsonObject:
    return {JSON_TYPE: {"schema": message}, PROTO_TYPE: {"schema": {"type": "string", "format": "binary"}}}


def _envelopes(message: JsonObject) -> JsonObject:
    schema = {"type": "string", "format": "binary", "description": _STREAM, "x-message-schema": message}
    return {kind: {"schema": schema} for kind in CONNECT_STREAMS}
