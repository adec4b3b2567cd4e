"""What the formats that embed have in common, as faces and as upstreams."""

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.counts import Count, count
from umg_grpc.wire.provider_errors import as_error, from_provider, is_error, unreadable
from umg_grpc.wire.report import Report
from umg_grpc.wire.vectors import are_whole

LARGEST = 2**31 - 1
Dimensions = Annotated[int, Meta(ge=1, le=LARGEST)] | Annotated[float, Meta(ge=1, le=LARGEST)]
"""Length of a vector: `256` and `256.0`."""


# --- the request


def note_unsaid(request: pb.EmbedRequest, report: Report) -> None:
    """Reports what only the source document holds, where an upstream of another format cannot start from it."""
    source = request.source
    for field in source.uncarried_fields:
        report.drop(field)
    if source.unknown_field_count:
        from umg_grpc.wire import EMBEDDING_FORMATS  # here: the formats need this module

        found = EMBEDDING_FORMATS[source.format].unknown_fields(source.body)
        report.unknown += max(found.count, source.unknown_field_count)
        report.first_unknown = found.first


def without_nulls(fields: dict[str, Raw]) -> dict[str, Raw]:
    """The members of a caller's body that say something: null is absent, and not every provider knows that."""
    return {name: raw for name, raw in fields.items() if bytes(raw) != b"null"}


# --- the answer


class Skipped(Struct, gc=False):
    """An object that is only counted."""


class ProviderUsage(Struct):
    """`usage`."""

    prompt_tokens: Count = None
    total_tokens: Count = None


def refuse_error(error: Raw) -> None:
    """Raises UmgError where the answer is an error in spite of its status."""
    if is_error(error):
        raise from_provider(200, as_error(msgspec.json.decode(error)))


def fill_usage(response: pb.EmbedResponse, prompt: Count, total: Count) -> None:
    """Sets the usage, from the one figure where the provider told only one of the two; none where it told neither."""
    if prompt is None and total is None:
        return
    response.usage.input_tokens = count(total if prompt is None else prompt)
    response.usage.total_tokens = count(prompt if total is None else total)


def fill_vectors(response: pb.EmbedResponse, vectors: Sequence[bytes], request: pb.EmbedRequest) -> None:
    """Sets the vectors, one an input. Raises UmgError(UPSTREAM_FAILED) for any other number of them, and for one that
    is none.
    """
    check_count(len(vectors), request)
    if not are_whole(vectors):
        raise unreadable(": a vector in it is empty or broken")
    add = response.embeddings.add
    for vector in vectors:
        add().values = vector


def check_count(vectors: int, request: pb.EmbedRequest) -> None:
    """Raises UmgError(UPSTREAM_FAILED) unless there is one vector an input."""
    if vectors != (asked := len(request.inputs)):
        raise unreadable(f": it has {vectors} vectors for {asked} inputs")


def about_inputs(error: UmgError) -> UmgError:
    """A provider's refusal, with what was too long by its canonical name."""
    if error.reason == pb.ERROR_REASON_CONTEXT_TOO_LONG:
        error.metadata["field"] = "inputs"
    return error
