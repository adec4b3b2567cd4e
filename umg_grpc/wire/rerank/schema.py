"""Body of `POST /v1/rerank` and `POST /v2/rerank` as typed structs: the text document's fields, and the fields that
clients of the Cohere and Jina kinds send (text formats, 5.2). Both paths accept all of them: older clients of the
second version send fields of the first. `None` means absent, and so does an explicit null.
"""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.core.json import ABSENT, NonEmpty, PositiveWhole

MAX_DOCUMENTS = 1_000_000
"""Upper limit of the operator's setting, which the service enforces."""

RankFields = Annotated[list[NonEmpty], Meta(max_length=100)]
Limit = Annotated[int, Meta(ge=1, le=MAX_COUNT)] | Annotated[float, Meta(ge=1, le=MAX_COUNT)]
Priority = Annotated[int, Meta(ge=0, le=999)] | Annotated[float, Meta(ge=0, le=999)]


class RelevantSpans(Struct):
    """Member `relevant_spans`: requests positions within the documents, which our responses cannot express."""

    mode: Literal["enabled", "disabled"]
    threshold: Raw = ABSENT
    max_spans: Raw = ABSENT


class RerankOptions(Struct, kw_only=True):
    """Members of a request's body other than its documents."""

    model: NonEmpty
    query: NonEmpty
    top_n: PositiveWhole | None = None
    return_documents: bool | None = None
    rank_fields: RankFields | None = None
    max_chunks_per_doc: Limit | None = None
    max_tokens_per_doc: Limit | None = None
    priority: Priority | None = None
    relevant_spans: RelevantSpans | None = None


class RerankBody(RerankOptions, kw_only=True):
    """Body of a rerank request. A document is a string or an object, so each is checked when it is decoded."""

    documents: Annotated[list[Raw], Meta(min_length=1, max_length=MAX_DOCUMENTS)]


class PlainBody(RerankOptions, kw_only=True, forbid_unknown_fields=True):
    """Body of a rerank request without unknown fields and with all documents as strings, as nearly all bodies are."""

    documents: Annotated[list[str], Meta(min_length=1, max_length=MAX_DOCUMENTS)]
