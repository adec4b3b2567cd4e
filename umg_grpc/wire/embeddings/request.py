"""The request, both directions: a caller's body -> canonical, canonical -> a provider's body."""

from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.embed import without_nulls
from umg_grpc.wire.embeddings.schema import EmbeddingsBody, KnownEmbeddingsBody
from umg_grpc.wire.format import UpstreamRequest
from umg_grpc.wire.json import JsonObject, check_utf8, invalid, missing, parse, whole
from umg_grpc.wire.paths import wire_paths
from umg_grpc.wire.report import Report, untranslatable
from umg_grpc.wire.unknown import Fields, note_source

NAME = "embeddings"
PATH = "/embeddings"

ENCODINGS = {"float": pb.EMBEDDING_ENCODING_FLOAT, "base64": pb.EMBEDDING_ENCODING_BASE64}

FIELDS = Fields(EmbeddingsBody, {}, {})
"""A body's."""

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


def decode_request(body: bytes, headers: Mapping[str, str]) -> pb.EmbedRequest:
    """The request with its source. Raises UmgError: MALFORMED_BODY, MISSING_FIELD, INVALID_FIELD."""
    try:
        asked: EmbeddingsBody = _KNOWN.decode(check_utf8(body))
        unknown: Sequence[str] = ()
    except (ValueError, RecursionError):
        asked = parse(EmbeddingsBody, body)
        unknown = FIELDS.unknown(body)
    request = pb.EmbedRequest(model=asked.model)
    _decode_input(asked.input, request)
    if (dimensions := whole(asked.dimensions, "dimensions")) is not None:
        request.dimensions = dimensions
    if asked.encoding_format is not None:
        request.encoding = ENCODINGS[asked.encoding_format]
    if asked.user is not None:
        request.user = asked.user
    source = request.source
    source.format, source.body = NAME, body
    source.uncarried_fields.extend(unknown)
    return request


_KNOWN = msgspec.json.Decoder(KnownEmbeddingsBody)

_KINDS = {str: "a text", int: "a token", list: "a list of tokens"}


def _decode_input(value: str | list[str | int | list[int]] | None, request: pb.EmbedRequest) -> None:
    """Fills `request.inputs`: a text, or a list of texts, of lists of tokens, or of the tokens of one text."""
    add = request.inputs.add
    if value is None:
        raise missing("input")
    if isinstance(value, str):
        add().text = value
        return
    kinds = set(map(type, value))
    if len(kinds) > 1:
        first = type(value[0])
        place = next(place for place, item in enumerate(value) if type(item) is not first)
        told = f"{_KINDS[type(value[place])]} beside {_KINDS[first]}"
        raise invalid(f"input[{place}]", f"{told}; send texts, the tokens of one text, or lists of tokens")
    if kinds == {int}:
        add().tokens.ids.extend(item for item in value if isinstance(item, int))
    for item in value:
        if isinstance(item, str):
            add().text = item
        elif isinstance(item, list):
            add().tokens.ids.extend(item)


# --- canonical -> provider


def encode_request(request: pb.EmbedRequest, model: str) -> UpstreamRequest:
    """The call of `POST /embeddings`. Vectors are asked for in base64, so that they stay packed: unless the caller's
    own body goes, whose answer goes back as it comes.

    Raises UmgError(UNTRANSLATABLE) for vectors of several lengths, and for texts beside tokens.
    """
    report = Report()
    if request.source.format == NAME:
        return UpstreamRequest(PATH, _rebuild(request, model), {}, report)
    note_source(request.source, report)
    fields: JsonObject = {"model": model, "input": _encode_inputs(request), "encoding_format": "base64"}
    if dimensions := _dimensions(request):
        fields["dimensions"] = dimensions
    if request.HasField("user"):
        fields["user"] = request.user
    if request.task_type:
        report.drop("task_type")
    for place, item in enumerate(request.inputs):
        for name in ("task_type", "title"):
            if getattr(item, name):
                report.drop(f"inputs[{place}].{name}")
    return UpstreamRequest(PATH, msgspec.json.encode(fields), {}, report)


def _rebuild(request: pb.EmbedRequest, model: str) -> bytes:
    """The caller's body, all else byte for byte: one `model`, no nulls, and no length that is written `256.0`."""
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
    place = next(place for place, text in enumerate(texts) if bool(text) != bool(texts[0]))
    problem = "this model's provider takes texts or tokens in one call; send the others in another"
    raise untranslatable(f"inputs[{place}]", problem)


def _dimensions(request: pb.EmbedRequest) -> int:
    """The length that all vectors shall have; 0 for the model's own."""
    lengths = [item.dimensions or request.dimensions for item in request.inputs]
    if len(set(lengths)) > 1:
        place = next(place for place, length in enumerate(lengths) if length != lengths[0])
        problem = "this model's provider makes vectors of one length in one call; ask for the others in another"
        raise untranslatable(f"inputs[{place}].dimensions", problem)
    return lengths[0]
