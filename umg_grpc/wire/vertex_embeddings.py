"""Embeddings of Google's Vertex AI, for providers only: `:predict`, and `:embedContent` for newer models."""

from functools import partial

import msgspec
from msgspec import Raw, Struct

from umg_grpc.knowledge.cloud_vector_models import max_inputs_of, vector_model
from umg_grpc.v1 import pb
from umg_grpc.wire.core.embedding_vectors import from_numbers
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject
from umg_grpc.wire.core.lenient_number_reading import Count
from umg_grpc.wire.core.split_character_repair import decode
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.errors.provider_errors import no_response, unreadable
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.native import errors
from umg_grpc.wire.native.model_paths import call_path
from umg_grpc.wire.shared_embedding_checks import (
    TOO_LONG,
    common_length,
    fill_usage,
    fill_vectors,
    raise_error,
    texts_of,
    valid_count,
)
from umg_grpc.wire.text_format_interface import UpstreamRequest
from umg_grpc.wire.unary_format_interface import UnaryProviderFormat

PROTOCOL_NAME = "vertex_embeddings"
MAX_INPUTS = 250
WITH_TITLE = "RETRIEVAL_DOCUMENT"  # the only task type with which `:predict` accepts a title
SINGLE_SHAPE = "embedContent"


# --- canonical -> provider


def encode_request(request: pb.EmbedRequest, model: str, notes: RequestNotes = NO_NOTES) -> UpstreamRequest:
    """Encode a call of the model's method. Raise UmgError(UNTRANSLATABLE) for tokens and for several lengths."""
    report = Report()
    notes.report_uncarried(report)
    if request.user:
        report.drop("user")
    shape = vector_model(PROTOCOL_NAME, model, request.model).shape
    texts, length = texts_of(request), common_length(request)
    body = _content(request, texts, length) if shape == SINGLE_SHAPE else _instances(request, texts, length, report)
    return UpstreamRequest(call_path(model, f":{shape}"), msgspec.json.encode(body), {}, report)


def _instances(request: pb.EmbedRequest, texts: list[str], length: int, report: Report) -> JsonObject:
    instances = list[JsonObject]()
    for index, (text, item) in enumerate(zip(texts, request.inputs, strict=True)):
        fields: JsonObject = {"content": text}
        if task_type := item.task_type or request.task_type:
            fields["task_type"] = task_type
        if item.title and task_type == WITH_TITLE:
            fields["title"] = item.title
        elif item.title:
            report.drop(f"inputs[{index}].title")
        instances.append(fields)
    return {"instances": instances, **({"parameters": {"outputDimensionality": length}} if length else {})}


def _content(request: pb.EmbedRequest, texts: list[str], length: int) -> JsonObject:
    """Return the body for one text. `texts` has one text, or a whole batch whose report needs only the first one."""
    item = request.inputs[0]
    config: JsonObject = {
        "taskType": item.task_type or request.task_type,
        "title": item.title,
        "outputDimensionality": length,
    }
    config = {name: value for name, value in config.items() if value}
    return {"content": {"parts": [{"text": texts[0]}]}, **({"embedContentConfig": config} if config else {})}


# --- provider -> canonical


class Statistics(Struct):
    """Counts of one text."""

    token_count: Count = None


class VertexVector(Struct):
    """Vector of one text."""

    values: Raw
    statistics: Statistics | None = None


class Prediction(Struct):
    """Element of the response of `:predict`."""

    embeddings: VertexVector


class Usage(Struct, rename="camel"):
    """Counts of `:embedContent`."""

    prompt_token_count: Count = None


class VertexResponse(Struct, rename="camel"):
    """Body of a response of either method."""

    predictions: list[Prediction] | None = None
    embedding: VertexVector | None = None
    usage_metadata: Usage | None = None
    error: Raw = ABSENT_MEMBER


_RESPONSE = msgspec.json.Decoder(VertexResponse)


def decode_response(body: bytes, request: pb.EmbedRequest, pass_: bool) -> pb.EmbedResponse:
    """Decode a response of either method. `pass_` is not used. Raise UmgError(UPSTREAM_FAILED) if it is invalid."""
    try:
        parsed = decode(_RESPONSE, body)
        raise_error(parsed.error)
        vectors = [each.embeddings for each in parsed.predictions or ()]
        if parsed.embedding is not None:
            vectors = [parsed.embedding]
        elif parsed.predictions is None:
            raise no_response(body, too_long=TOO_LONG)
        response = pb.EmbedResponse(model=request.model)
        counts = [valid_count(each.statistics.token_count) if each.statistics else None for each in vectors]
        if parsed.usage_metadata is not None:
            fill_usage(response, parsed.usage_metadata.prompt_token_count, None)
        elif None not in counts:
            fill_usage(response, sum(each for each in counts if each is not None), None)
        fill_vectors(response, [from_numbers(each.values) for each in vectors], request)
    except (ValueError, RecursionError):
        raise unreadable() from None
    return response


VERTEX_EMBEDDINGS: UnaryProviderFormat[pb.EmbedRequest, pb.EmbedResponse] = UnaryProviderFormat(
    name=PROTOCOL_NAME,
    protocol=PROTOCOL_NAME,
    encode_request=encode_request,
    decode_response=decode_response,
    decode_error=partial(errors.decode_error, too_long=TOO_LONG),
    provider_name="gcp.vertex_ai",
    max_items=MAX_INPUTS,
    max_items_of=partial(max_inputs_of, PROTOCOL_NAME),
)
