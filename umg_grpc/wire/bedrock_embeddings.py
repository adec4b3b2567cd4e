"""Embeddings by InvokeModel of Amazon Bedrock, for providers only. Bodies differ for models of Amazon and of Cohere."""

from collections.abc import Callable, Mapping
from functools import partial

import msgspec
from msgspec import Raw, Struct

from umg_grpc.knowledge.cloud_vector_models import VectorModel, max_inputs_of, vector_model
from umg_grpc.v1 import pb
from umg_grpc.wire.core.bedrock_invoke_calls import input_tokens, model_path
from umg_grpc.wire.core.embedding_vectors import from_numbers
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject
from umg_grpc.wire.core.lenient_number_reading import Count
from umg_grpc.wire.core.split_character_repair import decode
from umg_grpc.wire.dropped_fields_report import Report, untranslatable
from umg_grpc.wire.errors import provider_errors
from umg_grpc.wire.errors.provider_errors import no_response, unreadable
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.shared_embedding_checks import TOO_LONG, common_length, fill_usage, fill_vectors, texts_of
from umg_grpc.wire.text_format_interface import UpstreamRequest
from umg_grpc.wire.unary_format_interface import UnaryProviderFormat

PROTOCOL_NAME = "bedrock_embeddings"
MAX_INPUTS = 96
DOCUMENT_PURPOSE, INDEX_PURPOSE = "search_document", "GENERIC_INDEX"
"""Purposes of vectors if the caller states none, since the providers' bodies require one."""


# --- canonical -> provider


def encode_request(request: pb.EmbedRequest, model: str, notes: RequestNotes = NO_NOTES) -> UpstreamRequest:
    """Encode a call of InvokeModel. Raise UmgError(UNTRANSLATABLE) for tokens and for unsupported vector lengths."""
    report, row = Report(), vector_model(PROTOCOL_NAME, model, request.model)
    notes.report_uncarried(report)
    if request.user:
        report.drop("user")
    for index, item in enumerate(request.inputs):
        if item.title:
            report.drop(f"inputs[{index}].title")
    length = common_length(request)
    if length and not row.length:
        problem = "this model makes vectors of one length only; leave it out or choose another model"
        raise untranslatable("dimensions", problem)
    sizes: JsonObject = {row.length: length} if length else {}
    body = BODY_ENCODERS[row.shape](texts_of(request), sizes, _task(request, row, report))
    return UpstreamRequest(model_path(model, "invoke"), msgspec.json.encode(body), {}, report)


def _task(request: pb.EmbedRequest, row: VectorModel, report: Report) -> str:
    """Return the vectors' purpose in the model's words; "" if there is none, or for one that it lacks, which is
    reported.
    """
    stated = {item.task_type or request.task_type for item in request.inputs}
    found = row.tasks.get(next(iter(stated)), "") if len(stated) == 1 else ""
    if found:
        return found
    if request.task_type:
        report.drop("task_type")
    for index, item in enumerate(request.inputs):
        if item.task_type:
            report.drop(f"inputs[{index}].task_type")
    return ""


def _titan_text(texts: list[str], sizes: JsonObject, task: str) -> JsonObject:
    return {"inputText": texts[0], **sizes}


def _titan_image(texts: list[str], sizes: JsonObject, task: str) -> JsonObject:
    return {"inputText": texts[0], **({"embeddingConfig": sizes} if sizes else {})}


def _nova(texts: list[str], sizes: JsonObject, task: str) -> JsonObject:
    text = {"truncationMode": "NONE", "value": texts[0]}
    parameters: JsonObject = {"embeddingPurpose": task or INDEX_PURPOSE, **sizes, "text": text}
    return {"taskType": "SINGLE_EMBEDDING", "singleEmbeddingParams": parameters}


def _cohere(texts: list[str], sizes: JsonObject, task: str) -> JsonObject:
    return {"texts": texts, "input_type": task or DOCUMENT_PURPOSE, "embedding_types": ["float"], **sizes}


BODY_ENCODERS: Mapping[str, Callable[[list[str], JsonObject, str], JsonObject]] = {
    "titan_text": _titan_text,
    "titan_image": _titan_image,
    "nova": _nova,
    "cohere": _cohere,
}
"""Shape of a model's body -> function of (texts, member with the vector length, purpose) that returns the body."""


# --- provider -> canonical


class BedrockResponse(Struct, rename={"tokens": "inputTextTokenCount"}):
    """Body of a response: one vector (Titan), or several in one of three forms (Cohere, Nova)."""

    embedding: Raw = ABSENT_MEMBER
    embeddings: Raw = ABSENT_MEMBER
    tokens: Count = None


class ByType(Struct):
    """Vectors by the type of their numbers (Cohere)."""

    float: list[Raw]


class Typed(Struct):
    """Vector with the kind of its input (Nova)."""

    embedding: Raw


_RESPONSE = msgspec.json.Decoder(BedrockResponse)
_BY_TYPE = msgspec.json.Decoder(ByType)
_LIST = msgspec.json.Decoder(list[Raw])
_TYPED = msgspec.json.Decoder(Typed)


def decode_response(body: bytes, request: pb.EmbedRequest, pass_: bool) -> pb.EmbedResponse:
    """Decode the response of any model. `pass_` is not used. Raise UmgError(UPSTREAM_FAILED) if it is invalid."""
    try:
        parsed = decode(_RESPONSE, body)
        vectors = _vectors(parsed)
        if vectors is None:
            raise no_response(body, too_long=TOO_LONG)
        response = pb.EmbedResponse(model=request.model)
        fill_usage(response, parsed.tokens, None)
        fill_vectors(response, [from_numbers(vector) for vector in vectors], request)
    except (ValueError, RecursionError):
        raise unreadable() from None
    return response


def _vectors(response: BedrockResponse) -> list[Raw] | None:
    if response.embedding:
        return [response.embedding]
    if not response.embeddings:
        return None
    if bytes(response.embeddings).startswith(b"{"):
        return _BY_TYPE.decode(response.embeddings).float
    listed = _LIST.decode(response.embeddings)
    return [_TYPED.decode(each).embedding if bytes(each).startswith(b"{") else each for each in listed]


def read_headers(response: pb.EmbedResponse, headers: Mapping[str, str]) -> None:
    """Set the usage of a response from its headers, if its body states none."""
    if not response.HasField("usage"):
        fill_usage(response, input_tokens(headers), None)


BEDROCK_EMBEDDINGS: UnaryProviderFormat[pb.EmbedRequest, pb.EmbedResponse] = UnaryProviderFormat(
    name=PROTOCOL_NAME,
    protocol=PROTOCOL_NAME,
    encode_request=encode_request,
    decode_response=decode_response,
    decode_error=partial(provider_errors.decode_error, too_long=TOO_LONG),
    read_headers=read_headers,
    provider_name="aws.bedrock",
    max_items=MAX_INPUTS,
    max_items_of=partial(max_inputs_of, PROTOCOL_NAME),
)
