"""Bodies of `POST /v1/embeddings` as typed structs: the text document's fields, and those of current SDK types.

`None` is absent: an explicit null says nothing.
"""

from typing import Annotated, Generic, Literal, TypeVar

from msgspec import Meta, Raw, Struct

from umg_grpc.wire.embed import Dimensions
from umg_grpc.wire.json import ABSENT

Text = Annotated[str, Meta(min_length=1)]
Token = Annotated[int, Meta(ge=0, le=2**32 - 1)]
Tokens = Annotated[list[Token], Meta(min_length=1)]
Index = Annotated[int, Meta(ge=0, le=2**31 - 1)]  # of an input


# --- a caller's


class EmbeddingsBody(Struct, kw_only=True):
    """The body."""

    model: Annotated[str, Meta(min_length=1, max_length=512)]
    # one text; several; one as token ids; several so (what stands in one list is of one kind: `decode_request` sees)
    input: Text | Annotated[list[Text | Token | Tokens], Meta(min_length=1)] | None = None
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Dimensions | None = None
    user: str | None = None


class KnownEmbeddingsBody(EmbeddingsBody, forbid_unknown_fields=True):
    """A body without fields that nobody knows, as most are."""


# --- a provider's


Vector = TypeVar("Vector")
"""`Numbers`, or `Raw` where it is not read (yet)."""
Numbers = bytes | list[float]
"""Base64 or numbers, whatever was asked for."""


class ProviderEmbedding(Struct, Generic[Vector]):
    """An element of `data`."""

    embedding: Vector
    index: Index | None = None


class Head(Struct, kw_only=True):
    """What an answer says beside its vectors."""

    model: str | None = None
    usage: Raw = ABSENT
    error: Raw = ABSENT


class ProviderAnswer(Head, Generic[Vector], kw_only=True):
    """An answer."""

    data: list[ProviderEmbedding[Vector]] | None = None
