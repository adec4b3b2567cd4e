"""Model list in the shape of the native format."""

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.errors.http_status import HTTP_STATUS
from umg_grpc.wire.model_lists import chat
from umg_grpc.wire.model_lists.query_parameters import Query, page_size
from umg_grpc.wire.native.errors import STATUS_NAMES

DEFAULT_PAGE = 50
OPERATION_ACTIONS = {
    pb.MODEL_OPERATION_GENERATE: ("generateContent", "streamGenerateContent"),
    pb.MODEL_OPERATION_COUNT_TOKENS: ("countTokens",),
    pb.MODEL_OPERATION_EMBED: ("embedContent", "batchEmbedContents"),
}
"""Operation -> names of its actions in native paths. The native format has no other operations."""
LIMIT_MEMBERS = {"input_token_limit": "inputTokenLimit", "output_token_limit": "outputTokenLimit"}
SAMPLING_MEMBERS = {"temperature": "temperature", "max_temperature": "maxTemperature", "top_p": "topP", "top_k": "topK"}


def decode_query(query: Query) -> pb.ListModelsRequest:
    """Return the page by `pageSize` (default 50) and `pageToken`, also in snake case. Raise UmgError(INVALID_FIELD)."""
    request = pb.ListModelsRequest(page_size=page_size(query, ("pageSize", "page_size"), DEFAULT_PAGE))
    if token := query.get("pageToken") or query.get("page_token"):
        request.page_token = token
    return request


def encode_list(response: pb.ListModelsResponse, _: pb.ListModelsRequest) -> bytes:
    """Return the body of a page of models. An empty page has `models: []`, since SDKs warn without the member."""
    listed: JsonObject = {"models": [_model(model) for model in response.models]}
    if response.next_page_token:
        listed["nextPageToken"] = response.next_page_token
    return msgspec.json.encode(listed)


def encode_model(model: pb.Model) -> bytes:
    """Return the JSON body for one model."""
    return msgspec.json.encode(_model(model))


def encode_error(error: UmgError, status: int) -> bytes:
    """Return the JSON error body of `/v1/models` for a caller of the native format. `status`: HTTP status."""
    status_name = STATUS_NAMES[HTTP_STATUS.get(error.reason, 500)]
    return msgspec.json.encode({"error": {**chat.error_details(error, status), "status": status_name}})


def _model(model: pb.Model) -> JsonObject:
    limits: JsonObject = {
        LIMIT_MEMBERS[field.name]: value for field, value in model.ListFields() if field.name in LIMIT_MEMBERS
    }
    reasons = model.capabilities.reasoning != pb.REASONING_CONTROL_UNSPECIFIED
    return {
        "name": f"models/{model.id}",
        "baseModelId": model.id,
        "version": model.version or model.id,  # "Model versions are carried in the model id" (Versioning)
        "displayName": model.display_name or model.id,
        "description": model.description,
        **limits,
        "supportedGenerationMethods": [
            action for each in model.operations for action in OPERATION_ACTIONS.get(each, ())
        ],
        **({"thinking": True} if reasons else {}),
        **{
            SAMPLING_MEMBERS[field.name]: value
            for field, value in model.sampling.ListFields()
            if field.name in SAMPLING_MEMBERS
        },
    }
