"""Request bodies and responses in the OpenAPI document."""

from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from types import MappingProxyType

from google.protobuf.descriptor_pool import Default
from msgspec import Struct

from http_facade.exchange.request_bodies import essence_of
from http_facade.handlers.admin_rpc_table import ADMIN_METHODS
from http_facade.openapi.call_examples import example_of
from http_facade.openapi.error_components import ErrorResponses
from http_facade.openapi.operation_texts import operation_of
from http_facade.routes import Route, Shape
from umg_grpc.operations.wire_formats_by_name import unary_codec, unary_operation
from umg_grpc.wire import TEXT_FACES, account_api_json, administration_api_json, channel_api_json, model_price_json
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.errors.http_status import OF_FORMATS
from umg_grpc.wire.model_lists.openapi_bodies import model, model_list
from umg_grpc.wire.openapi_schemas import media_response_types as media
from umg_grpc.wire.openapi_schemas import text_response_types as text
from umg_grpc.wire.openapi_schemas.body_types import (
    BODY_TYPES,
    COMPACTION_BODIES,
    COUNT_BODIES,
    MODEL_BODIES,
    BodyTypes,
    RemixBody,
)
from umg_grpc.wire.openapi_schemas.encoded_bodies import SAMPLE_TEXT, EncodedBody
from umg_grpc.wire.openapi_schemas.protobuf_message_schemas import PlainSchemas
from umg_grpc.wire.openapi_schemas.struct_schemas import StructSchemas
from umg_grpc.wire.responses.stored_responses import encode_deleted
from umg_grpc.wire.video.openapi_bodies import VIDEO_DELETED, VIDEO_PAGE, queried_task

JSON_TYPE, EVENTS_TYPE, FORM_TYPE = "application/json", "text/event-stream", "multipart/form-data"
_BINARY: JsonObject = {"type": "string", "format": "binary"}
_ADMIN_BODIES: Mapping[Shape, type[Struct]] = MappingProxyType(
    {
        Shape.CREATE_KEY: administration_api_json.SettingsBody,
        Shape.UPDATE_KEY: administration_api_json.SettingsBody,
        Shape.ROTATE_KEY: administration_api_json.RotateBody,
        Shape.CREATE_ORGANIZATION: account_api_json.AccountBody,
        Shape.UPDATE_ORGANIZATION: account_api_json.AccountBody,
        Shape.CREATE_PROJECT: account_api_json.AccountBody,
        Shape.UPDATE_PROJECT: account_api_json.AccountBody,
        Shape.CREATE_USER: account_api_json.NewUserBody,
        Shape.UPDATE_USER: account_api_json.UserBody,
        Shape.CHECK_CHANNEL: channel_api_json.CheckChannelBody,
        Shape.UPDATE_CHANNEL: channel_api_json.UpdateChannelBody,
        Shape.UPDATE_MODEL_PRICE: model_price_json.UpdateModelPriceBody,
    }
)
_STATUS: JsonObject = {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]}
_READINESS: JsonObject = {
    "type": "object",
    "properties": {"status": {"type": "string"}, "reasons": {"type": "array", "items": {"type": "string"}}},
    "required": ["status", "reasons"],
}
_HEADERS: JsonObject = {
    "x-request-id": {"description": "Id of the request, for questions.", "schema": {"type": "string"}}
}


class Responses:
    """Builder of the request bodies and responses of the paths in the OpenAPI document."""

    def __init__(self, schemas: JsonObject, types: StructSchemas, errors: ErrorResponses) -> None:
        """Create a builder that adds the bodies' schemas to `schemas`. `types`: builder of schemas of Python types."""
        self._types = types
        self._errors = errors
        self._messages = PlainSchemas(schemas)

    def request_body(self, route: Route) -> JsonObject | None:
        """Return the OpenAPI request body of a route, with an example; None for a route without a body."""
        if (content := self._request_content(route)) is None:
            return None
        example = example_of(route).body
        if example is not None:
            kind = JSON_TYPE if JSON_TYPE in content else FORM_TYPE
            content[kind] = {"schema": content[kind]["schema"], "example": example}
        return {"required": route.shape not in {Shape.ROTATE_KEY, Shape.CHECK_CHANNEL}, "content": content}

    def _request_content(self, route: Route) -> dict[str, JsonObject] | None:
        if (types := _body_types(route)) is not None:
            kinds = (unary_codec(route.format).media_types if route.shape is Shape.UNARY else ()) or (JSON_TYPE,)
            schema = self._types.schema(types.request)
            content = dict[str, JsonObject]()
            for kind in kinds:
                content[kind] = {"schema": schema if kind == JSON_TYPE else _BINARY}
            if types.form is not None:
                content[FORM_TYPE] = {"schema": self._types.schema(types.form)}
            return content
        if (body := _ADMIN_BODIES.get(route.shape)) is not None:
            return {JSON_TYPE: {"schema": self._types.schema(body)}}
        if route.shape is Shape.GET_MODEL and (named := MODEL_BODIES.get(route.format)) is not None:
            return {JSON_TYPE: {"schema": self._types.schema(named)}}
        if route.shape is Shape.REMIX_VIDEO:
            return {JSON_TYPE: {"schema": self._types.schema(RemixBody)}}
        if route.shape is Shape.RECEIVE_VIDEO_CALLBACK:
            return {JSON_TYPE: {"schema": {}}}
        return None

    def responses(self, route: Route) -> JsonObject:
        """Return the OpenAPI responses of a route by their HTTP statuses."""
        found: JsonObject = {"200": _response("Success.", self._content(route))}
        if route.shape in {Shape.GET_VIDEO_CONTENT, Shape.GET_FILE}:
            found["206"] = _response("The requested range.", self._content(route))
        if route.shape in {Shape.GET_VIDEO_CONTENT, Shape.GET_FILE, Shape.LIST_MODELS, Shape.GET_MODEL}:
            found["304"] = _response("The client has it, by `if-none-match`.", {})
        if route.shape is Shape.HOME:
            found["302"] = _response("A browser is led to the playground.", {})
        if route.shape is Shape.READY:
            found["503"] = _response("Calls are not served: the gateway starts or drains.", self._content(route))
        statuses = set(operation_of(route).errors)
        if 402 in statuses:  # an operation that calls a provider
            statuses |= {status for (face, _), status in OF_FORMATS.items() if face == route.error_format}
        for status in sorted(statuses):
            found[str(status)] = self._errors.response(route.error_format, status)
        return found

    def _content(self, route: Route) -> JsonObject:
        """Return the OpenAPI content of the successful response: media types and their schemas."""
        if route.shape is Shape.GENERATE and route.stream:
            return self._stream(route)
        if route.shape is Shape.UNARY and unary_codec(route.format).content_type is not None:
            return self._any(_body_types(route))
        if (types := _body_types(route)) is not None:
            content: JsonObject = {JSON_TYPE: {"schema": self._types.schema(types.response)}}
            if types.event is not None and route.stream is None:
                content[_stream_type(route)] = self._events(types.event)
            return content
        if (method := ADMIN_METHODS.get(route.shape)) is not None:
            response = Default().FindMethodByName(f"umg.v1.{method.service}.{method.name}").output_type
            return {JSON_TYPE: {"schema": self._messages.schema(response)}}
        if (kind := _RESPONSES.get(route.shape)) is not None:
            content = {JSON_TYPE: {"schema": self._types.schema(kind(route))}}
            return content | (
                {EVENTS_TYPE: self._events(text.ResponseEvent)} if route.shape is Shape.GET_RESPONSE else {}
            )
        return dict(_CONTENTS[route.shape])

    def _any(self, types: BodyTypes | None) -> JsonObject:
        """Return the OpenAPI content of a response whose media type the request selects, its JSON and its events."""
        content: JsonObject = {"*/*": {"schema": _BINARY}}
        if types is not None and types.response is not bytes:
            content[JSON_TYPE] = {"schema": self._types.schema(types.response)}
        if types is not None and types.event is not None:
            content[EVENTS_TYPE] = self._events(types.event)
        return content

    def _stream(self, route: Route) -> JsonObject:
        types = BODY_TYPES[route.format]
        array = {"type": "array", "items": self._types.schema(types.response)}
        return {
            JSON_TYPE: {"schema": array},
            **({EVENTS_TYPE: self._events(types.event)} if types.event is not None else {}),
        }

    def _events(self, kind: object) -> JsonObject:
        """Return the OpenAPI content of a stream of events, or of lines, whose data has the Python type `kind`. The
        schema is in the extension field `x-event-schema`, since the used version of OpenAPI has none for events.
        """
        schema = {"type": "string", "description": "Events. `x-event-schema` is the schema of the data of each."}
        return {"schema": {**schema, "x-event-schema": self._types.schema(kind)}}


_RESPONSE_DELETED = EncodedBody(
    "responses.Deleted", "Confirmation that a stored response was deleted.", lambda: [encode_deleted(SAMPLE_TEXT)]
)
_RESPONSES: Mapping[Shape, Callable[[Route], object]] = MappingProxyType(
    {
        Shape.GET_RESPONSE: lambda _: text.Response,
        Shape.DELETE_RESPONSE: lambda _: _RESPONSE_DELETED,
        Shape.CANCEL_RESPONSE: lambda _: text.Response,
        Shape.LIST_INPUT_ITEMS: lambda _: text.InputItems,
        Shape.GET_VIDEO: lambda route: queried_task(route.format),
        Shape.LIST_VIDEOS: lambda _: VIDEO_PAGE,
        Shape.DELETE_VIDEO: lambda _: VIDEO_DELETED,
        Shape.REMIX_VIDEO: lambda route: queried_task(route.format),
        Shape.RECEIVE_VIDEO_CALLBACK: lambda _: media.CallbackTaken,
        Shape.LIST_MODELS: lambda route: model_list(route.format),
        Shape.GET_MODEL: lambda route: model(route.format),
        Shape.GET_VERSION: lambda _: text.OllamaVersion,
    }
)
"""Types of the responses of operations without a body."""
_CONTENTS: Mapping[Shape, JsonObject] = MappingProxyType(
    {
        Shape.GET_VIDEO_CONTENT: {"video/mp4": {"schema": _BINARY}, "image/*": {"schema": _BINARY}},
        Shape.GET_FILE: {"*/*": {"schema": _BINARY}},
        Shape.ALIVE: {JSON_TYPE: {"schema": _STATUS}},
        Shape.HOME: {JSON_TYPE: {"schema": _STATUS}},
        Shape.READY: {JSON_TYPE: {"schema": _READINESS}},
        Shape.METRICS: {"text/plain": {"schema": {"type": "string"}}},
    }
)
"""Contents of responses that have no type."""


def _stream_type(route: Route) -> str:
    codec = TEXT_FACES.get(route.format)
    return EVENTS_TYPE if codec is None else essence_of(codec.stream_type)


def _response(description: str, content: JsonObject) -> JsonObject:
    return {"description": description, "headers": _HEADERS, **({"content": content} if content else {})}


def _body_types(route: Route) -> BodyTypes | None:
    """Return the Python types of the bodies of an operation that exists in several formats; otherwise None."""
    match route.shape:
        case Shape.GENERATE | Shape.GENERATE_IMAGE | Shape.CREATE_VIDEO:
            return BODY_TYPES[route.format]
        case Shape.UNARY:
            types: BodyTypes = resolve_name(unary_operation(route.format).body_types)[route.format]
            return types
        case Shape.COMPACT:
            return COMPACTION_BODIES[route.format]
        case Shape.COUNT_TOKENS:
            return COUNT_BODIES[route.format]
        case _:  # operations without a format, whose bodies the schema describes
            return None
