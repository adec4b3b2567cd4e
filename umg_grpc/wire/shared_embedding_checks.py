"""Checks and conversions shared by the embedding formats `embeddings` (OpenAI's) and `native_embeddings` (Gemini's)."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta, Raw, Struct

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.knowledge.matryoshka_models import shortest_vector
from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.core.embedding_vectors import ELEMENT_BYTES, are_whole, shorten
from umg_grpc.wire.core.lenient_number_reading import Count, as_number, count
from umg_grpc.wire.core.split_character_repair import decode
from umg_grpc.wire.dropped_fields_report import untranslatable
from umg_grpc.wire.errors.provider_errors import as_error, from_provider, is_error, unreadable
from umg_grpc.wire.text_format_interface import BIG_BYTES

TOO_LONG = "inputs"  # canonical field that the error names if the provider rejects a request as too long
MAX_JSON_INTEGER = 2**53  # largest integer that every JSON parser reads exactly
Dimensions = Annotated[int, Meta(ge=1, le=MAX_COUNT)] | Annotated[float, Meta(ge=1, le=MAX_COUNT)]
"""Type of the requested vector length in a JSON body, written as `256` or `256.0`."""


# --- the request


def without_nulls(fields: dict[str, Raw]) -> dict[str, Raw]:
    """Return the members of a JSON body that are not null, for providers that reject null for an absent member."""
    return {name: raw for name, raw in fields.items() if bytes(raw) != b"null"}


def common_length(request: pb.EmbedRequest) -> int:
    """Return the length required for all inputs, 0 if the model decides. Raise UmgError(UNTRANSLATABLE) for several."""
    lengths = [item.dimensions or request.dimensions for item in request.inputs]
    if len(set(lengths)) > 1:
        index = next(index for index, length in enumerate(lengths) if length != lengths[0])
        problem = "this model's provider makes vectors of one length in one call; ask for the others in another"
        raise untranslatable(f"inputs[{index}].dimensions", problem)
    return lengths[0]


def texts_of(request: pb.EmbedRequest) -> list[str]:
    """Return the texts of all inputs. Raise UmgError(UNTRANSLATABLE) for token ids."""
    for index, item in enumerate(request.inputs):
        if not item.text:
            problem = "this model's provider accepts no tokens; send the text itself"
            raise untranslatable(f"inputs[{index}].tokens", problem)
    return [item.text for item in request.inputs]


# --- the response

DecodedT = TypeVar("DecodedT")
RawT = TypeVar("RawT")


class ProviderUsage(Struct):
    """Member `usage` of a provider's response."""

    prompt_tokens: Count = None
    total_tokens: Count = None


def read_vectors(
    body: bytes, decoded: msgspec.json.Decoder[DecodedT], raw: msgspec.json.Decoder[RawT]
) -> DecodedT | RawT:
    """Return a response with its vectors. `raw`: large bodies, whose vectors would block the event loop, and rare forms
    stay raw. Raise ValueError or RecursionError for an invalid body.
    """
    if len(body) < BIG_BYTES:
        with suppress(msgspec.ValidationError):
            return decode(decoded, body)
    return decode(raw, body)


def raise_error(error: Raw) -> None:
    """Raise the UmgError that the member `error` of a response with HTTP status 200 states, if any."""
    if is_error(error):
        raise from_provider(200, as_error(msgspec.json.decode(error)), too_long=TOO_LONG)


def fill_usage(response: pb.EmbedResponse, prompt: Count, total: Count) -> None:
    """Set the token counts: both to the same if only one of `prompt` and `total` is valid, none if neither is."""
    prompt_count, total_count = valid_count(prompt), valid_count(total)
    if prompt_count is not None or total_count is not None:
        response.usage.input_tokens = (prompt_count if prompt_count is not None else total_count) or 0
        response.usage.total_tokens = (total_count if total_count is not None else prompt_count) or 0


def valid_count(tokens: Count) -> int | None:
    """Return a provider's token count; None for an invalid one."""
    number = as_number(tokens)
    if number is None or not 0 <= number <= MAX_JSON_INTEGER or number != int(number):
        return None
    return count(number)


def is_valid_count(tokens: Count) -> bool:
    """Return whether a provider's token count may be passed on unchanged: an integer from 0 to `MAX_JSON_INTEGER`."""
    return type(tokens) is int and 0 <= tokens <= MAX_JSON_INTEGER


def fill_vectors(
    response: pb.EmbedResponse, vectors: Sequence[bytes], request: pb.EmbedRequest, model: str | None = None
) -> None:
    """Set the vectors (little-endian float32), cut if the `model` is known to allow it. Raise UmgError(UPSTREAM_FAILED)
    for a wrong number or length of vectors, and for an empty or invalid vector.
    """
    check_count(len(vectors), request)
    if not are_whole(vectors):
        raise unreadable(": a vector in it is empty or broken")
    if wrong := wrong_length([len(vector) // ELEMENT_BYTES for vector in vectors], request):
        shortest = (model and shortest_vector(model)) or shortest_vector(request.model)
        lengths = [item.dimensions or request.dimensions for item in request.inputs]
        if shortest is None or not all(_can_cut(*pair, shortest) for pair in zip(vectors, lengths, strict=True)):
            raise wrong
        vectors = [shorten(vector, length) for vector, length in zip(vectors, lengths, strict=True)]
    add = response.embeddings.add
    for vector in vectors:
        add().values = vector


def _can_cut(vector: bytes, requested: int, shortest: int) -> bool:
    length = len(vector) // ELEMENT_BYTES
    return bool(requested) and (length == requested or shortest <= requested < length)


def have_requested_length(lengths: Sequence[int], request: pb.EmbedRequest) -> bool:
    """Return whether vectors of these lengths, one for each input, fit the request. A length of 0 is no vector."""
    return all(lengths) and wrong_length(lengths, request) is None


def wrong_length(lengths: Sequence[int], request: pb.EmbedRequest) -> UmgError | None:
    """Return UPSTREAM_FAILED for a length that was not requested, or differs among inputs without one; else None."""
    other, default = 0, request.dimensions
    for length, item in zip(lengths, request.inputs, strict=True):
        requested = item.dimensions or default
        other = other or (0 if requested else length)
        if length != (requested or other):
            return other_length(length, requested, other)
    return None


def own_length(response: pb.EmbedResponse, request: pb.EmbedRequest) -> int:
    """Return the vector length that the model chose; 0 if the request requires a length for every input."""
    positions = (
        position for position, item in enumerate(request.inputs) if not (item.dimensions or request.dimensions)
    )
    position = next(positions, None)
    return 0 if position is None else len(response.embeddings[position].values) // ELEMENT_BYTES


def other_length(length: int, requested: int, other: int) -> UmgError:
    """Return UPSTREAM_FAILED for a wrong vector `length`. `requested`: 0 for none; `other`: other vectors' length."""
    if requested:
        problem = f"not of the {requested} that were requested; leave the length out or choose another model"
        message = f"the provider made vectors of {length} numbers, {problem}"
    else:
        message = f"the provider made vectors of {other} and of {length} numbers in one response; try again"
    # A length that the provider's model does not make is no fault of the channel: another model may make it.
    failure = Failure.CONTEXT if requested else Failure.AMBIGUOUS
    return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).with_failure(failure)


def check_count(vectors: int, request: pb.EmbedRequest) -> None:
    """Raise UmgError(UPSTREAM_FAILED) unless a response has as many vectors as the request has inputs."""
    if vectors != (expected := len(request.inputs)):
        raise unreadable(f": it has {vectors} vectors for {expected} inputs")
