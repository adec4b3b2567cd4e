"""The model list in the native shape (text formats, 4.5)."""

import msgspec

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.models import chat
from umg_grpc.wire.models.query import Query, page_size
from umg_grpc.wire.native.errors import KINDS

DEFAULT_PAGE = 50
ACTIONS = {
    pb.MODEL_OPERATION_GENERATE: ("generateContent", "streamGenerateContent"),
    pb.MODEL_OPERATION_COUNT_TOKENS: ("countTokens",),
    pb.MODEL_OPERATION_EMBED: ("embedContent", "batchEmbedContents"),
}
"""What an operation is called in a path of this format. Others it does not have."""


class NativeModel(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """A model. What is not known of limits and sampling is left out."""

    name: str
    base_model_id: str
    version: str
    display_name: str
    description: str
    input_token_limit: int | None = None
    output_token_limit: int | None = None
    supported_generation_methods: list[str]
    thinking: bool = False
    temperature: float | None = None
    max_temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None


class NativeModelList(msgspec.Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """Body of `GET /v1beta/models`. `models` is there when there are none: SDKs warn without it."""

    models: list[NativeModel]
    next_page_token: str | None = None


class ErrorDetails(chat.ErrorDetails):
    """What an error body on `GET /v1/models` says: the path's own members, and the word that this shape's SDKs read."""

    status: str


class ErrorBody(msgspec.Struct):
    """Body of a failed call of a path that callers of other shapes share."""

    error: ErrorDetails


def decode_query(query: Query) -> pb.ListModelsRequest:
    """`pageSize` (50 unless given) and `pageToken`, in either spelling. Raises UmgError(INVALID_FIELD) naming the
    parameter.
    """
    asked = pb.ListModelsRequest(page_size=page_size(query, ("pageSize", "page_size"), DEFAULT_PAGE))
    if token := query.get("pageToken") or query.get("page_token"):
        asked.page_token = token
    return asked


def encode_list(response: pb.ListModelsResponse, _: pb.ListModelsRequest) -> bytes:
    """The body that lists the models."""
    models = [_model(model) for model in response.models]
    return msgspec.json.encode(NativeModelList(models=models, next_page_token=response.next_page_token or None))


def encode_model(model: pb.Model) -> bytes:
    """The body that describes one model."""
    return msgspec.json.encode(_model(model))


def encode_error(error: UmgError, status: int) -> bytes:
    """The body of a failed call of a path that callers of other shapes share (readings, 3)."""
    told = chat.error_details(error, status)
    word = KINDS.get(error.reason, KINDS[pb.ERROR_REASON_UNSPECIFIED])[1]
    return msgspec.json.encode(ErrorBody(ErrorDetails(told.message, told.type, told.code, word)))


def _model(model: pb.Model) -> NativeModel:
    sampling = model.sampling
    return NativeModel(
        name=f"models/{model.id}",
        base_model_id=model.id,
        version=model.version or model.id,  # "Model versions are carried in the model id" (text document, Versioning)
        display_name=model.display_name or model.id,
        description=model.description,
        input_token_limit=model.input_token_limit if model.HasField("input_token_limit") else None,
        output_token_limit=model.output_token_limit if model.HasField("output_token_limit") else None,
        supported_generation_methods=[action for each in model.operations for action in ACTIONS.get(each, ())],
        thinking=model.capabilities.reasoning != pb.REASONING_CONTROL_UNSPECIFIED,
        temperature=sampling.temperature if sampling.HasField("temperature") else None,
        max_temperature=sampling.max_temperature if sampling.HasField("max_temperature") else None,
        top_p=sampling.top_p if sampling.HasField("top_p") else None,
        top_k=sampling.top_k if sampling.HasField("top_k") else None,
    )
