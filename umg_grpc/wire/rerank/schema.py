"""JSON body of `POST /v1/rerank` and `/v2/rerank` as typed structs: fields of the specification, and of Cohere and Jina
clients; null is absent. Both paths accept all fields, since older clients of the second version send those of the
first.
"""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, NonEmpty, PositiveWhole

MAX_DOCUMENTS = 1_000_000
"""Maximum number of documents in a body. An operator may configure a lower limit, which the service checks."""

RankFields = Annotated[list[NonEmpty], Meta(max_length=100)]
Limit = Annotated[int, Meta(ge=1, le=MAX_COUNT)] | Annotated[float, Meta(ge=1, le=MAX_COUNT)]
Priority = Annotated[int, Meta(ge=0, le=999)] | Annotated[float, Meta(ge=0, le=999)]


class RelevantSpans(Struct):
    """Member `relevant_spans`, which requests positions inside the documents; responses of the gateway have none."""

    mode: Literal["enabled", "disabled"]
    threshold: Raw = ABSENT_MEMBER
    max_spans: Raw = ABSENT_MEMBER


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
    """Body of a rerank request. Its documents, strings or objects, are decoded later, one by one."""

    documents: Annotated[list[Raw], Meta(min_length=1, max_length=MAX_DOCUMENTS)]


class PlainBody(RerankOptions, kw_only=True, forbid_unknown_fields=True):
    """Body of a rerank request that rejects unknown fields and documents other than strings; decoding it is faster,
    and succeeds for most bodies.
    """

    documents: Annotated[list[str], Meta(min_length=1, max_length=MAX_DOCUMENTS)]
