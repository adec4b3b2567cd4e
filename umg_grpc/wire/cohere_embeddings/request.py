"""Decoding of the body of Cohere's `POST /v2/embed`."""

from collections.abc import Iterator, Mapping

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.cohere_embeddings.schema import EmbedBody, Input
from umg_grpc.wire.core.caller_field_paths import wire_paths
from umg_grpc.wire.core.json_decoding import echo, invalid, is_present, missing, parse, whole
from umg_grpc.wire.core.unknown_field_detection import Fields
from umg_grpc.wire.facts_beside_request import DecodedRequest, RequestNotes

FACE_NAME = "cohere_embed"

TASK_TYPES = {
    "search_document": "RETRIEVAL_DOCUMENT",
    "search_query": "RETRIEVAL_QUERY",
    "classification": "CLASSIFICATION",
    "clustering": "CLUSTERING",
}
"""Value of `input_type` -> task in the native vocabulary."""
QUANTIZED_TYPES = frozenset({"int8", "uint8"})
"""Types of vectors that the gateway cannot make of floats, since only the vendor's models have the scale."""
ACCEPTED_TYPES = "`float`, `base64`, `binary` or `ubinary`"
UNCARRIED_MEMBERS = ("max_tokens", "priority")
KNOWN_FIELDS = Fields(EmbedBody, {}, {})
TEXT_SEPARATOR = "\n"  # between the texts of one input, as in the native format

wire_path = wire_paths(
    [
        (r"^inputs\[(\d+)\]\.dimensions", "output_dimension"),
        (r"^inputs\[(\d+)\]\.task_type", "input_type"),
        (r"^inputs\[(\d+)\]\.(?:text|content|tokens)\b.*", r"texts[\1]"),
        (r"^inputs", "texts"),
        (r"^dimensions", "output_dimension"),
        (r"^task_type", "input_type"),
    ]
)


def decode_request(body: bytes, headers: Mapping[str, str], model: str = "") -> DecodedRequest[pb.EmbedRequest]:
    """Decode the body of `POST /v2/embed`. Raise UmgError: MALFORMED_BODY, MISSING_FIELD, INVALID_FIELD (images)."""
    decoded = parse(EmbedBody, body)
    request, notes = pb.EmbedRequest(model=decoded.model), RequestNotes()
    request.source.format, request.source.body = FACE_NAME, body
    for text in _texts(decoded):
        request.inputs.add().text = text
    if (dimensions := whole(decoded.output_dimension, "output_dimension")) is not None:
        request.dimensions = dimensions
    if decoded.input_type == "image":
        raise _images("input_type")
    if decoded.input_type is not None:
        request.task_type = TASK_TYPES[decoded.input_type]
    for index, kind in enumerate(decoded.embedding_types or ()):
        if kind in QUANTIZED_TYPES:
            problem = f"`{kind}` cannot be made of a provider's floats; send {ACCEPTED_TYPES}"
            raise invalid(f"embedding_types[{index}]", problem)
    if decoded.truncate is not None:
        notes.uncarried.append("truncate")
    notes.uncarried.extend(name for name in UNCARRIED_MEMBERS if is_present(getattr(decoded, name)))
    notes.uncarried.extend(KNOWN_FIELDS.unknown(body))
    return DecodedRequest(request, notes)


def _texts(decoded: EmbedBody) -> Iterator[str]:
    """Yield the text of each input. Raise UmgError unless the body has exactly one of `texts` and `inputs`."""
    if decoded.images:
        raise _images("images")
    if decoded.texts is None and decoded.inputs is None:
        raise missing("texts")
    if decoded.texts is not None and decoded.inputs is not None:
        raise invalid("inputs", "`texts` is present, too; send one of them")
    yield from decoded.texts or ()
    for index, each in enumerate(decoded.inputs or ()):
        yield _text_of(each, f"inputs[{index}]")


def _text_of(each: Input, at: str) -> str:
    texts = list[str]()
    for index, part in enumerate(each.content):
        place = f"{at}.content[{index}]"
        if part.type == "image_url":
            raise _images(place)
        if part.type != "text":
            raise invalid(f"{place}.type", f"expected `text`, got `{echo(part.type)}`; send a text")
        if not part.text:
            raise missing(f"{place}.text")
        texts.append(part.text)
    return TEXT_SEPARATOR.join(texts)


def _images(field: str) -> UmgError:
    return invalid(field, "the gateway embeds texts, and no images; send `texts`")
