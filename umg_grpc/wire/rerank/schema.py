"""Body of `POST /v1/rerank` and `POST /v2/rerank` as typed structs: the text document's fields, and those that clients
of the Cohere and Jina kinds send (text formats, 5.2). Both paths take all of them: older clients of the second version
send those of the first. `None` is absent: an explicit null says nothing.
"""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from umg_grpc.wire.json import ABSENT, PositiveWhole

LARGEST = 2**31 - 1

MOST_DOCUMENTS = 1_000_000
"""The operator's setting, which the service knows, is at most this."""

NonEmpty = Annotated[str, Meta(min_length=1)]
RankFields = Annotated[list[NonEmpty], Meta(max_length=100)]
Limit = Annotated[int, Meta(ge=1, le=LARGEST)] | Annotated[float, Meta(ge=1, le=LARGEST)]
Priority = Annotated[int, Meta(ge=0, le=999)] | Annotated[float, Meta(ge=0, le=999)]


class RelevantSpans(Struct):
    """`relevant_spans`: asks for places within the documents, for which our answers have no room."""

    mode: Literal["enabled", "disabled"]
    threshold: Raw = ABSENT
    max_spans: Raw = ABSENT


class Asked(Struct, kw_only=True):
    """The body without its documents."""

    model: NonEmpty
    query: NonEmpty
    top_n: PositiveWhole | None = None
    return_documents: bool | None = None
    rank_fields: RankFields | None = None
    max_chunks_per_doc: Limit | None = None
    max_tokens_per_doc: Limit | None = None
    priority: Priority | None = None
    relevant_spans: RelevantSpans | None = None


class RerankBody(Asked, kw_only=True):
    """The body. A document is a string or an object, so each is looked at where it is decoded."""

    documents: Annotated[list[Raw], Meta(min_length=1, max_length=MOST_DOCUMENTS)]


class PlainBody(Asked, kw_only=True, forbid_unknown_fields=True):
    """The body when all its documents are strings and it has no field beyond those, as nearly always."""

    documents: Annotated[list[str], Meta(min_length=1, max_length=MOST_DOCUMENTS)]
