"""JSON bodies of `POST /v1/embeddings` as typed structs: the specification's fields and SDK types'; null is absent."""

from typing import Annotated, Generic, Literal, TypeVar

from msgspec import Meta, Raw, Struct

from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER
from umg_grpc.wire.shared_embedding_checks import Dimensions

Text = Annotated[str, Meta(min_length=1)]
Token = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Tokens = Annotated[list[Token], Meta(min_length=1)]
Index = Annotated[int, Meta(ge=0, le=2**31 - 1)]  # of an input


# --- bodies of callers


class EmbeddingsBody(Struct, kw_only=True):
    """Body of a request to `POST /v1/embeddings`."""

    model: Annotated[str, Meta(min_length=1, max_length=512)]
    # one text; several texts; the token ids of one text; several lists of token ids (`decode_request` rejects mixed
    # lists)
    input: Text | Annotated[list[Text | Token | Tokens], Meta(min_length=1)] | None = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Dimensions | None = None
    user: str | None = None


class KnownEmbeddingsBody(EmbeddingsBody, forbid_unknown_fields=True):
    """Body of a request without unknown fields, as most bodies are: faster to decode, but fails on an unknown one."""


# --- bodies of providers


Vector = TypeVar("Vector")
"""Type of a vector: `Numbers`, or `Raw` if it is not decoded."""
Numbers = bytes | list[float]
"""Vector of a provider: base64 or numbers, since some providers ignore the requested encoding."""


class ProviderEmbedding(Struct, Generic[Vector]):
    """Element of `data` in a provider's response: the vector of one input."""

    embedding: Vector
    index: Index | None = None


class Head(Struct, kw_only=True):
    """Response of a provider without its vectors, which are not decoded."""

    model: str | None = None
    usage: Raw = ABSENT_MEMBER
    error: Raw = ABSENT_MEMBER


class ProviderResponse(Head, Generic[Vector], kw_only=True):
    """Response of a provider with its vectors."""

    data: list[ProviderEmbedding[Vector]] | None = None
