"""Path, query and header parameters in the OpenAPI document."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from google.protobuf.descriptor import FieldDescriptor

from http_facade.handlers.admin_rpc_table import ADMIN_METHODS
from http_facade.handlers.video_download_handler import DOWNLOAD_VARIANTS
from http_facade.handlers.video_handlers import IDEMPOTENCY_KEY, MAX_KEY_CHARACTERS
from http_facade.routes import MODEL_CALL_SHAPES, Route, Shape
from umg_grpc.operations.wire_formats_by_name import face_of
from umg_grpc.v1.comments import comments
from umg_grpc.wire.core.gateway_headers import CACHE_HEADER, STRICT_HEADER, TIMEOUT_HEADER
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.response_shape_selection import SHAPE_HEADER
from umg_grpc.wire.image_format_interface import ImageFormat
from umg_grpc.wire.model_lists.cohere import ENDPOINT_OPERATIONS
from umg_grpc.wire.protobuf_json import enum_names, fields_of, member_name
from umg_grpc.wire.responses.stored_responses import MAX_ITEMS
from umg_grpc.wire.text_format_interface import TextFace
from umg_grpc.wire.unary_format_interface import UnaryFace
from umg_grpc.wire.video import vid_f_caller_api, video_object_caller_api

_SEGMENT = re.compile(r"\{(\w+)\}")
_PATH = {
    "model": "Id of the model. It may contain slashes and colons.",
    "deployment": "Id of the model, in place of `model` in the body. Slashes in it may be percent-encoded.",
    "response_id": "Id of the stored response.",
    "task_id": "Id of the task.",
    "video_id": "Id of the finished video.",
    "key_id": "Id of the key.",
    "channel": "Name of the channel in the config.",
    "receiver": "Name of the receiver of alerts.",
    "account_id": "Id or name of the organisation or project.",
    "user_id": "Id of the user, or its e-mail address or name if one user has it.",
    "session_id": "Id of the session.",
    "request_id": "Id of the request, from `x-request-id` of its response.",
    "token": "Signed token of the link.",
    "signature": "Signature of the address.",
}


def _query(name: str, schema: JsonObject, description: str, *, required: bool = False) -> JsonObject:
    return {"name": name, "in": "query", "schema": schema, "description": description, "required": required}


def _choice(*values: str) -> JsonObject:
    return {"type": "string", "enum": list(values)}


_TEXT: JsonObject = {"type": "string"}


def _number(maximum: int, minimum: int = 1) -> JsonObject:
    return {"type": "integer", "minimum": minimum, "maximum": maximum}


_PAGES = (
    _query("pageSize", _number(1000), "Most models of a page. For the native shape."),
    _query("pageToken", _TEXT, "`nextPageToken` of the page before. For the native shape."),
)
_QUERIES: Mapping[Shape, tuple[JsonObject, ...]] = MappingProxyType(
    {
        Shape.GET_RESPONSE: (
            _query("stream", _choice("true", "false"), "Whether the response is sent as events."),
            _query("starting_after", _number(2**31, 0), "Number of the event after which the events begin."),
        ),
        Shape.LIST_INPUT_ITEMS: (
            _query("limit", _number(MAX_ITEMS), "Most items of a page."),
            _query("order", _choice("asc", "desc"), "Order of the items; `desc` is the default."),
            _query("after", _TEXT, "Id of the item after which the page begins."),
        ),
        Shape.LIST_VIDEOS: (
            _query("limit", _number(video_object_caller_api.MAX_LIMIT), "Most videos of a page."),
            _query("order", _choice(*video_object_caller_api.LIST_ORDERS), "Order of the videos by their creation."),
            _query("after", _TEXT, "Id of the video after which the page begins."),
        ),
        Shape.GET_VIDEO_CONTENT: (
            _query("variant", _choice(*DOWNLOAD_VARIANTS), "Kind of the result; `video` is the default."),
            _query("index", _number(9999, 0), "Number of the result, from 0."),
        ),
    }
)
_QUERIES_OF_FORMATS: Mapping[tuple[Shape, str], tuple[JsonObject, ...]] = MappingProxyType(
    {
        (Shape.LIST_MODELS, "native_models"): _PAGES,
        (Shape.LIST_MODELS, "models"): (
            *_PAGES,
            _query("limit", _number(1000), "Most models of a page. For the messages shape."),
            _query("after_id", _TEXT, "Id of the model after which the page begins. For the messages shape."),
            _query("before_id", _TEXT, "Id of the model before which the page ends. For the messages shape."),
            _query("page_size", _number(1000), "Most models of a page. For Cohere's shape."),
            _query("page_token", _TEXT, "`next_page_token` of the page before. For Cohere's shape."),
            _query(
                "endpoint", _choice(*ENDPOINT_OPERATIONS), "Endpoint that the listed models have. For Cohere's shape."
            ),
        ),
        (Shape.CREATE_VIDEO, "video_f"): (
            _query(
                "Action",
                _choice(vid_f_caller_api.SUBMIT_ACTION, vid_f_caller_api.QUERY_ACTION),
                "Action of the call: submission of a task, or query of its state.",
                required=True,
            )
            | {"example": vid_f_caller_api.SUBMIT_ACTION},
            _query("Version", _choice(vid_f_caller_api.API_VERSION), "Version of the API."),
        ),
        (Shape.GET_VIDEO, "video_e_3"): (
            _query("task_ids", _TEXT, "Id of the task; one in each call."),
            _query("external_task_ids", _TEXT, "The caller's own id of the task, instead of `task_ids`."),
        ),
    }
)
_ALT = _query("alt", _choice("sse", "json"), "`sse` selects events; without it the stream is one JSON array.")


def _header(name: str, description: str, schema: JsonObject = _TEXT) -> JsonObject:
    return {"name": name, "in": "header", "schema": schema, "description": description, "required": False}


_MODEL_HEADERS = (
    _header(STRICT_HEADER, "Whether fields that the provider cannot express are refused.", _choice("true", "false")),
    _header(TIMEOUT_HEADER, "Longest time of the call, for example `30` or `500ms`."),
    _header(
        CACHE_HEADER, "Time for which the response may come from the cache of responses, for example `5m`, or `off`."
    ),
)

_OF_THE_VENDOR = "Passed on to a provider of this format, whose vendor describes it."


def parameters(route: Route) -> list[JsonObject]:
    """Return the OpenAPI parameters of a route: path, query and headers."""
    found: list[JsonObject] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1},
         "description": _PATH[name]}
        for name in _SEGMENT.findall(route.name)
    ]  # fmt: skip
    found += _QUERIES.get(route.shape, ())
    found += _QUERIES_OF_FORMATS.get((route.shape, route.format), ())
    if route.shape is Shape.GENERATE and route.stream:
        found.append(_ALT)
    method = ADMIN_METHODS.get(route.shape)
    if method is not None and method.decode is None:
        named = set(_SEGMENT.findall(route.name))
        fields = fields_of(method.request).values()
        found += [_of_field(field) for field in fields if field.name not in named | method.values.keys()]
    return found + _headers(route)


def _headers(route: Route) -> list[JsonObject]:
    found = list[JsonObject]()
    if route.shape in MODEL_CALL_SHAPES:
        found += _MODEL_HEADERS
        codec = face_of(route.format)
        if isinstance(codec, TextFace | UnaryFace | ImageFormat):
            found += [
                _header(name, "Passed on to a provider of this format, whose vendor describes it.")
                for name in codec.source_headers
            ]
        if isinstance(codec, UnaryFace | ImageFormat) and codec.has_shapes:
            found.append(_header(SHAPE_HEADER, "Shape of the response.", _choice("documented", "sdk")))
    if route.shape in {Shape.CREATE_VIDEO, Shape.REMIX_VIDEO}:
        schema = {"type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARACTERS}
        found.append(_header(IDEMPOTENCY_KEY, "Key by which a repeated submission is recognized.", schema))
    return found


def _of_field(field: FieldDescriptor) -> JsonObject:
    described = comments().get(field.full_name, "")
    return _query(member_name(field), _schema_of_field(field), described)


def _schema_of_field(field: FieldDescriptor) -> JsonObject:
    if field.is_repeated:
        return {"type": "string", "description": "Values with commas between them."}
    if field.enum_type is not None:
        return _choice(*enum_names(field.enum_type).values())
    if member_name(field) != field.name:
        return {"type": "number", "minimum": 0, "maximum": 999_999_999}
    if field.message_type is not None:
        return {"type": "string", "format": "date-time"}
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return {"type": "boolean"}
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return _TEXT
    return {"type": "integer", "minimum": 0, "maximum": 999_999_999}
