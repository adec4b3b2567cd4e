"""Model lists for callers in the shapes of chat, messages, native, Cohere and Ollama: the rows of `MODEL_LISTS`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.cohere_errors import encode_error as encode_cohere_error
from umg_grpc.wire.core.caller_field_paths import wire_paths
from umg_grpc.wire.core.response_shape_selection import SDK_NAME, is_cohere_sdk
from umg_grpc.wire.messages.errors import encode_count_error
from umg_grpc.wire.model_lists import chat, cohere, messages, native, ollama
from umg_grpc.wire.model_lists.query_parameters import Query
from umg_grpc.wire.native.errors import encode_error as encode_native_error
from umg_grpc.wire.ollama.errors import encode_error as encode_ollama_error


@dataclass(frozen=True)
class ModelList:
    """Shape of a model list: functions that decode its query and encode its bodies."""

    decode_query: Callable[[Query], pb.ListModelsRequest]
    """Query -> request for the page that it selects. Raises UmgError(INVALID_FIELD) naming the parameter."""
    encode_list: Callable[[pb.ListModelsResponse, pb.ListModelsRequest], bytes]
    """(page, request for it) -> body."""
    encode_model: Callable[[pb.Model], bytes]
    encode_error: Callable[[UmgError, int], bytes]
    wire_path: Callable[[str], str] = str
    """Name of a canonical field (`page_size`) in this shape. For errors only."""
    decode_model: Callable[[bytes], str] | None = None
    """(body) -> id of the model to describe; None for a shape whose calls have it in the path. Raises UmgError."""
    media_types: tuple[str, ...] = ("application/json",)
    """Media types of the body that `decode_model` decodes; empty for any, as at the vendor's server."""
    max_age: int = 3600
    """Seconds for which a client may cache a response: "about one hour" (text document, GET /v1/models)."""


DEFAULT_SHAPE = "models"
"""Format of `/v1/models`, where headers or query may select a shape; it is also the shape if they select none."""
MESSAGES_LIST, NATIVE_LIST, COHERE_LIST = "messages_models", "key_native_models", "cohere_models"
SHAPE_OF_HEADER = {"anthropic-version": MESSAGES_LIST, "x-goog-api-key": NATIVE_LIST, "x-vendorg-api-key": NATIVE_LIST}
"""Request header -> shape that its presence selects; the first one present decides."""
SHAPES_OF_DEFAULT_PATH = (DEFAULT_SHAPE, MESSAGES_LIST, NATIVE_LIST, COHERE_LIST)
"""Shapes that callers of `/v1/models` can select."""
CHOOSING_HEADERS = (*SHAPE_OF_HEADER, SDK_NAME)
CHOOSING_PARAMETERS = {"key": NATIVE_LIST}
"""Query parameter -> shape that its presence selects, if no header does."""

_NATIVE = ModelList(
    decode_query=native.decode_query,
    encode_list=native.encode_list,
    encode_model=native.encode_model,
    encode_error=native.encode_error,
    wire_path=wire_paths([(r"^page_size$", "pageSize"), (r"^page_token$", "pageToken")]),
)
_OLLAMA = ModelList(
    decode_query=ollama.decode_query,
    encode_list=ollama.encode_list,
    encode_model=ollama.encode_model,
    encode_error=encode_ollama_error,
    decode_model=ollama.decode_model,
    media_types=(),
    max_age=0,  # the vendor's server states none: an editor's command to read the list again has to reach the gateway
)
MODEL_LISTS = {
    DEFAULT_SHAPE: ModelList(
        decode_query=chat.decode_query,
        encode_list=chat.encode_list,
        encode_model=chat.encode_model,
        encode_error=chat.encode_error,
    ),
    MESSAGES_LIST: ModelList(
        decode_query=messages.decode_query,
        encode_list=messages.encode_list,
        encode_model=messages.encode_model,
        encode_error=encode_count_error,  # which is both the document's body and the shape's own (readings, 3)
        wire_path=wire_paths([(r"^page_size$", "limit")]),
    ),
    NATIVE_LIST: _NATIVE,
    COHERE_LIST: ModelList(
        decode_query=cohere.decode_query,
        encode_list=cohere.encode_list,
        encode_model=cohere.encode_model,
        encode_error=encode_cohere_error,
    ),
    # the face that is native by its path, and so has that format's errors too
    "native_models": replace(_NATIVE, encode_error=encode_native_error),
    "ollama_models": _OLLAMA,
    "ollama_running": replace(_OLLAMA, encode_list=ollama.encode_running),
}


def shape_of(headers: Mapping[str, str], query: Query) -> str:
    """Return the shape in `MODEL_LISTS` that a call of `/v1/models` selects by headers (names in lower case), else by
    its query. Otherwise it is the shape of the SDK that a header names, else `DEFAULT_SHAPE`.
    """
    by_header = (shape for header, shape in SHAPE_OF_HEADER.items() if header in headers)
    by_parameter = (shape for parameter, shape in CHOOSING_PARAMETERS.items() if parameter in query)
    return next(by_header, None) or next(by_parameter, COHERE_LIST if is_cohere_sdk(headers) else DEFAULT_SHAPE)


def shape_for(face: str, headers: Mapping[str, str], query: Query) -> str:
    """Return the name of the shape in `MODEL_LISTS` for the response to a call. `face`: format of the call's path. For
    `/v1/models`, headers and query select the shape; for any other path, it is `face`.
    """
    return shape_of(headers, query) if face == DEFAULT_SHAPE else face
