"""Model list in the shape of the chat format."""

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.errors import message_for_callers
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.messages.errors import BAD_KEY
from umg_grpc.wire.model_lists.query_parameters import Query


def decode_query(_: Query) -> pb.ListModelsRequest:
    """Return a request for all models, since the shape has one page and no query parameters."""
    return pb.ListModelsRequest()


def encode_list(response: pb.ListModelsResponse, _: pb.ListModelsRequest) -> bytes:
    """Return the JSON body of the list of models."""
    return msgspec.json.encode({"object": "list", "data": [_model(model) for model in response.models]})


def encode_model(model: pb.Model) -> bytes:
    """Return the JSON body for one model."""
    return msgspec.json.encode(_model(model))


def encode_error(error: UmgError, status: int) -> bytes:
    """Return the JSON body of a failed call: `{error: {message, type, code}}`. `status`: HTTP status."""
    return msgspec.json.encode({"error": error_details(error, status)})


def error_details(error: UmgError, status: int) -> JsonObject:
    """Return the member `error` of a body. `code` is the reason in lower case, or the specified `invalid_api_key`."""
    code = "invalid_api_key" if error.reason in BAD_KEY else error.name.lower()
    return {"message": message_for_callers(error), "type": _error_type(status), "code": code}


def _model(model: pb.Model) -> JsonObject:
    return {"id": model.id, "object": "model", "created": model.create_time.seconds, "owned_by": model.owned_by}


def _error_type(status: int) -> str:
    if status >= 500:
        return "server_error"
    return "rate_limit_error" if status == 429 else "invalid_request_error"
