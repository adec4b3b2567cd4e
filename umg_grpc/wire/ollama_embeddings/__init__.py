"""Ollama's embeddings, for callers only: `POST /api/embed`, and the older `POST /api/embeddings` for one text."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.core.caller_field_paths import wire_paths
from umg_grpc.wire.core.embedding_vectors import elements, json_pieces, json_with_numbers, normalized
from umg_grpc.wire.core.json_decoding import JsonObject, check_utf8, invalid, is_present, parse, unknown_fields, whole
from umg_grpc.wire.facts_beside_request import DecodedRequest, RequestNotes
from umg_grpc.wire.ollama.errors import encode_error
from umg_grpc.wire.ollama_embeddings.schema import EmbedBody, EmbeddingsBody
from umg_grpc.wire.text_format_interface import Elapsed
from umg_grpc.wire.unary_format_interface import ClientShape, UnaryFace

EMBED_FACE, EMBEDDINGS_FACE = "ollama_embed", "ollama_embeddings"
"""Names of the two formats: for one or more texts, and for a single text."""
embed_path = wire_paths([(r"^inputs\[(\d+)\].*", r"input[\1]"), (r"^inputs\b", "input")])
embeddings_path = wire_paths([(r"^inputs\b.*", "prompt")])
_EMBED_FIELDS = frozenset(EmbedBody.__struct_fields__)
_EMBEDDINGS_FIELDS = frozenset(EmbeddingsBody.__struct_fields__)


def decode_embed(body: bytes, headers: Mapping[str, str], model: str = "") -> DecodedRequest[pb.EmbedRequest]:
    """Decode the body of `POST /api/embed`. Raise UmgError: MALFORMED_BODY, MISSING_FIELD, INVALID_FIELD. A request
    without texts, which loads the model on Ollama's server (ollama/ollama, `server/routes.go`, EmbedHandler), has no
    inputs.
    """
    given = parse(EmbedBody, check_utf8(body))
    texts = ([given.input] if given.input else []) if isinstance(given.input, str) else given.input or []
    if "" in texts:
        raise invalid(f"input[{texts.index('')}]", "the text is empty; leave it out")
    uncarried = ["truncate"] if given.truncate is not None else []
    uncarried += [name for name in ("options", "keep_alive") if is_present(getattr(given, name))]
    request = _request(EMBED_FACE, given.model, texts, body)
    if (length := whole(given.dimensions, "dimensions", MAX_COUNT)) is not None and length > 0:
        request.dimensions = length
    return DecodedRequest(request, RequestNotes(uncarried=[*uncarried, *unknown_fields(body, _EMBED_FIELDS)]))


def decode_embeddings(body: bytes, headers: Mapping[str, str], model: str = "") -> DecodedRequest[pb.EmbedRequest]:
    """Decode the body of `POST /api/embeddings`, as `decode_embed` does."""
    given = parse(EmbeddingsBody, check_utf8(body))
    uncarried = [name for name in ("options", "keep_alive") if is_present(getattr(given, name))]
    request = _request(EMBEDDINGS_FACE, given.model, [given.prompt] if given.prompt else [], body)
    return DecodedRequest(request, RequestNotes(uncarried=[*uncarried, *unknown_fields(body, _EMBEDDINGS_FIELDS)]))


def _request(face: str, model: str, texts: list[str], body: bytes) -> pb.EmbedRequest:
    request = pb.EmbedRequest(model=model, inputs=[pb.EmbeddingInput(text=text) for text in texts])
    request.source.format, request.source.body = face, body
    return request


def encode_embed(
    response: pb.EmbedResponse, request: pb.EmbedRequest, shape: ClientShape, elapsed: Elapsed | None = None
) -> bytes:
    """Return the JSON body of `POST /api/embed` in one piece."""
    return b"".join(encode_pieces(response, request, shape, elapsed))


def encode_pieces(
    response: pb.EmbedResponse, request: pb.EmbedRequest, shape: ClientShape, elapsed: Elapsed | None = None
) -> Iterator[bytes]:
    """Yield the body of `POST /api/embed` in pieces. Vectors get length 1, as Ollama's have. `elapsed`: durations."""
    timing: JsonObject = {} if elapsed is None else {"total_duration": elapsed(), "load_duration": 0}
    tail = msgspec.json.encode({**timing, "prompt_eval_count": response.usage.input_tokens})
    head = msgspec.json.encode({"model": response.model or request.model})[:-1] + b',"embeddings":['
    vectors = (embedding.values for embedding in response.embeddings)
    return json_pieces(
        head, vectors, lambda _, vector: elements(normalized(vector)), json_with_numbers, b"]," + tail[1:]
    )


def encode_embeddings(response: pb.EmbedResponse, request: pb.EmbedRequest, shape: ClientShape) -> bytes:
    """Return the JSON body of `POST /api/embeddings`; the vector keeps the length that the provider gave it."""
    return json_with_numbers({"embedding": elements(response.embeddings[0].values)})


def encode_empty(request: pb.EmbedRequest) -> tuple[str, bytes] | None:
    """Return (model, response body) for a request without texts; None if the request has texts."""
    if request.inputs:
        return None
    body: JsonObject = {"model": request.model, "embeddings": []}
    return request.model, msgspec.json.encode({"embedding": []} if request.source.format == EMBEDDINGS_FACE else body)


def _timed(elapsed: Elapsed) -> UnaryFace[pb.EmbedRequest, pb.EmbedResponse]:
    return replace(
        OLLAMA_EMBED,
        encode_response=partial(encode_embed, elapsed=elapsed),
        encode_pieces=partial(encode_pieces, elapsed=elapsed),
    )


OLLAMA_EMBED: UnaryFace[pb.EmbedRequest, pb.EmbedResponse] = UnaryFace(
    name=EMBED_FACE,
    source_headers=(),
    decode_request=decode_embed,
    encode_response=encode_embed,
    encode_pieces=encode_pieces,
    encode_empty=encode_empty,
    timed=_timed,
    encode_error=encode_error,
    wire_path=embed_path,
    media_types=(),
)
OLLAMA_EMBEDDINGS = replace(
    OLLAMA_EMBED,
    name=EMBEDDINGS_FACE,
    decode_request=decode_embeddings,
    encode_response=encode_embeddings,
    encode_pieces=None,
    timed=None,
    wire_path=embeddings_path,
)
