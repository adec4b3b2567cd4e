"""Embedding requests: a caller's body decoded to the canonical request, and that request encoded for a provider."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core.caller_field_paths import wire_paths
from umg_grpc.wire.core.json_decoding import JsonObject, check_utf8, invalid, missing, parse, whole
from umg_grpc.wire.core.unknown_field_detection import Fields
from umg_grpc.wire.dropped_fields_report import Report, untranslatable
from umg_grpc.wire.embeddings.schema import EmbeddingsBody, KnownEmbeddingsBody
from umg_grpc.wire.facts_beside_request import NO_NOTES, DecodedRequest, RequestNotes
from umg_grpc.wire.shared_embedding_checks import common_length, without_nulls
from umg_grpc.wire.text_format_interface import UpstreamRequest

FORMAT_NAME = "embeddings"
EMBEDDINGS_PATH = "/embeddings"

ENCODING_FORMATS = {"float": pb.EMBEDDING_ENCODING_FLOAT, "base64": pb.EMBEDDING_ENCODING_BASE64}

KNOWN_FIELDS = Fields(EmbeddingsBody, {}, {})

wire_path = wire_paths(
    [
        (r"^inputs\[\d+\]\.dimensions", "dimensions"),
        (r"^inputs\[(\d+)\]\.tokens(?:\.ids)?(?=$|\[)", r"input[\1]"),
        (r"^inputs\[(\d+)\]\.(?:text|content)", r"input[\1]"),
        (r"^inputs", "input"),
        (r"^encoding$", "encoding_format"),
    ]
)


# --- caller -> canonical


def decode_request(body: bytes, headers: Mapping[str, str], model: str = "") -> DecodedRequest[pb.EmbedRequest]:
    """Decode the JSON body of an embedding request. The canonical request keeps it as source document. `model` is not
    used, since the body contains the model. Raise UmgError: MALFORMED_BODY, MISSING_FIELD or INVALID_FIELD.
    """
    try:
        decoded: EmbeddingsBody = _KNOWN.decode(check_utf8(body))
        unknown: Sequence[str] = ()
    except (ValueError, RecursionError):
        decoded = parse(EmbeddingsBody, body)
        unknown = KNOWN_FIELDS.unknown(body)
    request = pb.EmbedRequest(model=decoded.model)
    _decode_input(decoded.input, request)
    if (dimensions := whole(decoded.dimensions, "dimensions")) is not None:
        request.dimensions = dimensions
    if decoded.encoding_format is not None:
        request.encoding = ENCODING_FORMATS[decoded.encoding_format]
    if decoded.user is not None:
        request.user = decoded.user
    source = request.source
    source.format, source.body = FORMAT_NAME, body
    return DecodedRequest(request, RequestNotes(uncarried=list(unknown)))


_KNOWN = msgspec.json.Decoder(KnownEmbeddingsBody)

_KINDS = {str: "a text", int: "a token", list: "a list of tokens"}


def _decode_input(value: str | list[str | int | list[int]] | None, request: pb.EmbedRequest) -> None:
    """Set `request.inputs` from the member `input`: a text, a list of texts, a list of token lists, or the list of
    the tokens of one text. Raise UmgError(MISSING_FIELD) for None.
    """
    add = request.inputs.add
    if value is None:
        raise missing("input")
    if isinstance(value, str):
        add().text = value
        return
    kinds = set(map(type, value))
    if len(kinds) > 1:
        first = type(value[0])
        index = next(index for index, item in enumerate(value) if type(item) is not first)
        mixed = f"{_KINDS[type(value[index])]} beside {_KINDS[first]}"
        raise invalid(f"input[{index}]", f"{mixed}; send texts, the tokens of one text, or lists of tokens")
    if kinds == {int}:
        add().tokens.ids.extend(item for item in value if isinstance(item, int))
    for item in value:
        if isinstance(item, str):
            add().text = item
        elif isinstance(item, list):
            add().tokens.ids.extend(item)


# --- canonical -> provider


def encode_request(request: pb.EmbedRequest, model: str, notes: RequestNotes = NO_NOTES) -> UpstreamRequest:
    """Encode a call of a provider's `POST /embeddings`. `notes`: facts about the caller's body. Vectors are requested
    in base64, which is decoded fastest, unless the caller's body is forwarded and its response passed through. Raise
    UmgError(UNTRANSLATABLE) for vectors of several lengths, and for texts mixed with tokens.
    """
    report = Report()
    if request.source.format == FORMAT_NAME:
        return UpstreamRequest(EMBEDDINGS_PATH, _rebuild(request, model), {}, report)
    notes.report_uncarried(report)
    fields: JsonObject = {"model": model, "input": _encode_inputs(request), "encoding_format": "base64"}
    if dimensions := common_length(request):
        fields["dimensions"] = dimensions
    if request.HasField("user"):
        fields["user"] = request.user
    if request.task_type:
        report.drop("task_type")
    for index, item in enumerate(request.inputs):
        for name in ("task_type", "title"):
            if getattr(item, name):
                report.drop(f"inputs[{index}].{name}")
    return UpstreamRequest(EMBEDDINGS_PATH, msgspec.json.encode(fields), {}, report)


def _rebuild(request: pb.EmbedRequest, model: str) -> bytes:
    fields = parse(dict[str, Raw], request.source.body)
    fields["model"] = Raw(msgspec.json.encode(model))
    if request.HasField("dimensions"):
        fields["dimensions"] = Raw(b"%d" % request.dimensions)
    return msgspec.json.encode(without_nulls(fields))


def _encode_inputs(request: pb.EmbedRequest) -> list[str] | list[list[int]]:
    texts = [item.text for item in request.inputs]
    if all(texts):
        return texts
    tokens = [list(item.tokens.ids) for item in request.inputs]
    if all(tokens):
        return tokens
    index = next(index for index, text in enumerate(texts) if bool(text) != bool(texts[0]))
    problem = "this model's provider accepts texts or tokens in one call; send the others in another"
    raise untranslatable(f"inputs[{index}]", problem)
