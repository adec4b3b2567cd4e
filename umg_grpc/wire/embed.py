"""What the formats that embed have in common, as faces and as upstreams."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct

from umg_grpc.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.counts import MOST, Count, as_number
from umg_grpc.wire.provider_errors import as_error, from_provider, is_error, unreadable
from umg_grpc.wire.vectors import ELEMENT_BYTES, are_whole

TOO_LONG = "inputs"
"""What a request has too much of."""
LARGEST = 2**31 - 1
Dimensions = Annotated[int, Meta(ge=1, le=LARGEST)] | Annotated[float, Meta(ge=1, le=LARGEST)]
"""Length of a vector: `256` and `256.0`."""


# --- the request


def without_nulls(fields: dict[str, Raw]) -> dict[str, Raw]:
    """The members of a caller's body that say something: null is absent, and not every provider knows that."""
    return {name: raw for name, raw in fields.items() if bytes(raw) != b"null"}


# --- the answer


class ProviderUsage(Struct):
    """`usage`."""

    prompt_tokens: Count = None
    total_tokens: Count = None


def refuse_error(error: Raw) -> None:
    """Raises UmgError where the answer is an error in spite of its status."""
    if is_error(error):
        raise from_provider(200, as_error(msgspec.json.decode(error)), too_long=TOO_LONG)


def fill_usage(response: pb.EmbedResponse, prompt: Count, total: Count) -> None:
    """Sets the usage, from the one figure where the provider told only one of the two; none where it told neither.
    Nonsense is nothing told.
    """
    told_prompt, told_total = _told(prompt), _told(total)
    if told_prompt is not None or told_total is not None:
        response.usage.input_tokens = (told_prompt if told_prompt is not None else told_total) or 0
        response.usage.total_tokens = (told_total if told_total is not None else told_prompt) or 0


def _told(tokens: Count) -> int | None:
    number = as_number(tokens)
    if number is None or not 0 <= number <= MOST:
        return None
    return int(number) if number == int(number) else None


def is_sane(tokens: Count) -> bool:
    """Whether callers can read it as it is."""
    return type(tokens) is int and 0 <= tokens <= MOST


def fill_vectors(response: pb.EmbedResponse, vectors: Sequence[bytes], request: pb.EmbedRequest) -> None:
    """Sets the vectors, one an input. Raises UmgError(UPSTREAM_FAILED) for any other number of them, for one that is
    none, and for other lengths than were asked for.
    """
    check_count(len(vectors), request)
    if not are_whole(vectors):
        raise unreadable(": a vector in it is empty or broken")
    if wrong := wrong_length([len(vector) // ELEMENT_BYTES for vector in vectors], request):
        raise wrong
    add = response.embeddings.add
    for vector in vectors:
        add().values = vector


def are_well(lengths: Sequence[int], request: pb.EmbedRequest) -> bool:
    """Whether vectors that seem to have so many numbers (0: that are none) are those that were asked for."""
    return all(lengths) and wrong_length(lengths, request) is None


def wrong_length(lengths: Sequence[int], request: pb.EmbedRequest) -> UmgError | None:
    """UPSTREAM_FAILED, unless vectors of so many numbers have the lengths that their inputs asked for, and all have one
    that asked for none.
    """
    own, every = 0, request.dimensions
    for length, item in zip(lengths, request.inputs, strict=True):
        asked = item.dimensions or every
        own = own or (0 if asked else length)
        if length != (asked or own):
            return other_length(length, asked, own)
    return None


def own_length(response: pb.EmbedResponse, request: pb.EmbedRequest) -> int:
    """How many numbers the vectors of an answer have that asked for no length; 0 where all did."""
    unasked = (place for place, item in enumerate(request.inputs) if not (item.dimensions or request.dimensions))
    place = next(unasked, None)
    return 0 if place is None else len(response.embeddings[place].values) // ELEMENT_BYTES


def other_length(made: int, asked: int, own: int) -> UmgError:
    """For a vector of another length than the one that was asked for, or, where none was, than the others have."""
    if asked:
        told = f"not of the {asked} that were asked for; leave the length out or choose another model"
        message = f"the provider made vectors of {made} numbers, {told}"
    else:
        message = f"the provider made vectors of {own} and of {made} numbers in one answer; try again"
    # a length that its model does not make is no fault of the channel: another model may make it
    failure = Failure.CONTEXT if asked else Failure.AMBIGUOUS
    return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).of(failure)


def check_count(vectors: int, request: pb.EmbedRequest) -> None:
    """Raises UmgError(UPSTREAM_FAILED) unless there is one vector an input."""
    if vectors != (asked := len(request.inputs)):
        raise unreadable(f": it has {vectors} vectors for {asked} inputs")
