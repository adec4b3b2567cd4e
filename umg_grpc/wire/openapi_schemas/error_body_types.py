"""Types of the error bodies of all formats, for the OpenAPI document."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Raw, Struct


class ChatErrorDetails(Struct, kw_only=True):
    """Member `error` of an error body of the chat format."""

    message: str
    type: str
    param: str | None = None
    """Path of the field in the body of the request."""
    code: str | None = None


class ChatError(Struct, kw_only=True):
    """Error body of the chat format, and of all formats without an error body of their own."""

    error: ChatErrorDetails


class MessagesErrorDetails(Struct, kw_only=True):
    """Member `error` of an error body of the messages format."""

    type: str
    message: str
    code: str | None = None
    details: dict[str, Raw]


class MessagesError(Struct, kw_only=True):
    """Error body of the messages format."""

    type: Literal["error"]
    error: MessagesErrorDetails
    request_id: str | None = None


class NativeErrorDetails(Struct, kw_only=True):
    """Member `error` of an error body of the native format."""

    code: int
    message: str
    status: str
    details: list[dict[str, Raw]] | None = None


class NativeError(Struct, kw_only=True):
    """Error body of the native format."""

    error: NativeErrorDetails


class KeyNativeErrorDetails(Struct, kw_only=True):
    """Member `error` of `KeyNativeError`."""

    message: str
    type: str
    code: str
    status: str


class KeyNativeError(Struct, kw_only=True):
    """Error body of `/v1/models` for a caller of the native format, in which an error has members of the native and
    of the chat format.
    """

    error: KeyNativeErrorDetails


class ImageError(Struct, kw_only=True):
    """Error body of the image paths, with the members of the documented shape and of the SDKs' shape."""

    code: int
    msg: str
    error: ChatErrorDetails


class RerankError(Struct, kw_only=True):
    """Error body of `POST /v2/rerank`."""

    message: str
    error: ChatErrorDetails


class CodeAndMessage(Struct, kw_only=True):
    """Member `error` of an error body of Entry D (the HTTP API of family `vidD`)."""

    code: str
    message: str


class ErrorD(Struct, kw_only=True):
    """Error body of Entry D (the HTTP API of family `vidD`)."""

    error: CodeAndMessage


class EnvelopedError(Struct, kw_only=True):
    """Error body of Entry E and Entry F (the HTTP APIs of families `vidE` and `vidF`)."""

    code: int
    message: str
    request_id: str
    data: None = None
    error: ChatErrorDetails


class ErrorDetailsG(Struct, kw_only=True):
    """Member `error` of an error body of Entry G (the HTTP API of family `vidG`)."""

    type: str
    message: str
    http_code: str


class ErrorG(Struct, kw_only=True):
    """Error body of Entry G (the HTTP API of family `vidG`)."""

    type: Literal["error"]
    error: ErrorDetailsG
    request_id: str


class ConnectError(Struct, kw_only=True):
    """Error body of the Connect protocol, with the details of the gRPC status."""

    code: str
    message: str
    details: list[dict[str, Raw]] | None = None


class OllamaError(Struct, kw_only=True):
    """Error body of Ollama's API, and last line of a failed stream."""

    error: str


ERROR_TYPES: Mapping[str, object] = MappingProxyType(
    {
        "messages": MessagesError,
        "count_tokens": MessagesError,
        "native": NativeError,
        "native_embedding": NativeError,
        "native_embeddings": NativeError,
        "native_models": NativeError,
        "models": ChatError | MessagesError | KeyNativeError,
        "images": ImageError,
        "image_edits": ImageError,
        "image_variations": ImageError,
        "rerank_v2": RerankError,
        "cohere": RerankError,
        "cohere_embed": RerankError,
        "video_d": ErrorD,
        "video_e_v1": EnvelopedError,
        "video_e_3": EnvelopedError,
        "video_f": EnvelopedError,
        "video_g": ErrorG,
        "connect": ConnectError,
        "ollama_chat": OllamaError,
        "ollama_generate": OllamaError,
        "ollama_embed": OllamaError,
        "ollama_embeddings": OllamaError,
        "ollama_models": OllamaError,
        "ollama_running": OllamaError,
    }
)
"""Name of a format -> type of its error bodies, for formats whose errors differ from those of the chat format."""


def error_type(name: str) -> object:
    """Return the type of the error bodies of the format `name` (a wire format, a model list or `connect`); that of
    the chat format for all formats without an error body of their own.
    """
    return ERROR_TYPES.get(name, ChatError)
