"""The model list in the chat shape (text document, "GET /v1/models" and "Model object")."""

from typing import Literal

import msgspec

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.messages.errors import BAD_KEY
from umg_grpc.wire.models.query import Query


class ChatModel(msgspec.Struct, kw_only=True):
    """A model."""

    id: str
    object: Literal["model"] = "model"
    created: int  # seconds since 1970; 0 where nobody said
    owned_by: str


class ChatModelList(msgspec.Struct, kw_only=True):
    """Body of `GET /v1/models`."""

    object: Literal["list"] = "list"
    data: list[ChatModel]


class ErrorDetails(msgspec.Struct):
    """What an error body says."""

    message: str
    type: str
    code: str


class ErrorBody(msgspec.Struct):
    """Body of a failed call: `{error: {message, type, code}}` (text document, "Errors"; readings, 3)."""

    error: ErrorDetails


def decode_query(_: Query) -> pb.ListModelsRequest:
    """All models: this shape has one page, whatever a query says."""
    return pb.ListModelsRequest()


def encode_list(response: pb.ListModelsResponse, _: pb.ListModelsRequest) -> bytes:
    """The body that lists the models."""
    return msgspec.json.encode(ChatModelList(data=[_model(model) for model in response.models]))


def encode_model(model: pb.Model) -> bytes:
    """The body that describes one model."""
    return msgspec.json.encode(_model(model))


def encode_error(error: UmgError, status: int) -> bytes:
    """The body of a failed call."""
    return msgspec.json.encode(ErrorBody(error_details(error, status)))


def error_details(error: UmgError, status: int) -> ErrorDetails:
    """`code` is the reason in lower case, or the documented `invalid_api_key`."""
    code = "invalid_api_key" if error.reason in BAD_KEY else error.name.lower()
    return ErrorDetails(error.message, _error_type(status), code)


def _model(model: pb.Model) -> ChatModel:
    return ChatModel(id=model.id, created=model.create_time.seconds, owned_by=model.owned_by)


def _error_type(status: int) -> str:
    if status >= 500:
        return "server_error"
    return "rate_limit_error" if status == 429 else "invalid_request_error"
