"""Examples of calls in the OpenAPI document, from the rows of `call_examples.json`: bodies, and models in paths.

The key of a row is a path, the kind and the format of a route, or the name of an RPC. A word in upper case, like
`TASK_ID`, stands for the id of an object of the caller, and `@speech.wav` for a file, as in commands of curl.
"""

from functools import cache
from importlib.resources import files

import msgspec
from google.protobuf.descriptor import MethodDescriptor
from msgspec import Struct

from http_facade.routes import Route
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.openapi_schemas.validation_rules import is_required

ID_WORDS = {
    "response_id": "RESPONSE_ID",
    "task_id": "TASK_ID",
    "task_ids": "TASK_ID",
    "video_id": "TASK_ID",
    "key_id": "KEY_ID",
    "account_id": "ACCOUNT_ID",
    "user_id": "USER_ID",
    "session_id": "SESSION_ID",
    "request_id": "REQUEST_ID",
    "token": "FILE_TOKEN",
    "receiver": "ops",
    "channel": "sandbox",
}
"""Name of a parameter -> word that stands for its value in examples."""


class CallExample(Struct, forbid_unknown_fields=True):
    """Example of a call; without a body for an operation that has none."""

    body: JsonObject | None = None
    model: str = ""
    """Value of the parameter for a model in the path."""


_NO_EXAMPLE, _EMPTY = CallExample(), CallExample(body={})


def example_of(route: Route) -> CallExample:
    """Return the example of a route; an empty one if the call needs nothing."""
    rows = _rows()
    return rows.get(route.name) or rows.get(f"{route.shape.name.lower()} {route.format}") or _NO_EXAMPLE


def example_of_method(method: MethodDescriptor) -> CallExample:
    """Return the example of an RPC: without a row an empty message, if nothing is required in it."""
    is_free = not any(is_required(field) for field in method.input_type.fields)
    rest = _EMPTY if is_free else _NO_EXAMPLE
    return _rows().get(f"{method.containing_service.name}.{method.name}", rest)


def with_example(parameter: JsonObject, example: CallExample) -> JsonObject:
    """Return a parameter with an example, if its call needs one."""
    name = str(parameter["name"])
    value = example.model if name in ("model", "deployment") else ID_WORDS.get(name, "")
    is_needed = parameter["in"] == "path" or name in ID_WORDS
    return {**parameter, "example": value} if value and is_needed else parameter


@cache
def _rows() -> dict[str, CallExample]:
    text = (files(__package__) / "call_examples.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, CallExample])
