"""JSON bodies of `:embedContent` and `:batchEmbedContents` as typed structs: the specification's fields, and SDK
types'. Those of requests reject unknown fields, so that `native.proto_json_normalization` can convert other spellings.
`None` means absent.
"""

from typing import Annotated, Generic, TypeVar

from msgspec import Meta, Raw, Struct

from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, NonEmpty
from umg_grpc.wire.core.lenient_number_reading import Count
from umg_grpc.wire.shared_embedding_checks import Dimensions

# --- structs of a caller's body


class TextPart(Struct, forbid_unknown_fields=True):
    """Part of a content: a text. Parts of other kinds are rejected."""

    text: str | None = None


class Content(Struct, forbid_unknown_fields=True):
    """Member `content`: the text to embed; its role has no effect."""

    parts: list[TextPart] | None = None
    role: str | None = None


class Options(Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Options of an embedding, which are beside its content in the body."""

    task_type: NonEmpty | None = None
    title: str | None = None
    output_dimensionality: Dimensions | None = None


class Config(Options, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Member `embedContentConfig`, in which newer clients send the options, and further options that only some
    providers have.
    """

    mime_type: Raw = ABSENT_MEMBER
    auto_truncate: Raw = ABSENT_MEMBER
    document_ocr: Raw = ABSENT_MEMBER
    audio_track_extraction: Raw = ABSENT_MEMBER


class EmbedBody(Options, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Body of `:embedContent`, and element of `requests` in `:batchEmbedContents`. The model is in the path; a model
    in the body must be the same.
    """

    content: Content | None = None
    embed_content_config: Config | None = None
    model: str | None = None


class BatchBody(Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Body of `:batchEmbedContents`."""

    requests: Annotated[list[EmbedBody], Meta(min_length=1)]
    model: str | None = None


# --- structs of a provider's body


Values = TypeVar("Values")
"""Type of a vector: numbers, or `Raw` if it is not to be decoded."""


class Vector(Struct, Generic[Values]):
    """Vector of one input in a response."""

    values: Values


class UsageMetadata(Struct, rename="camel"):
    """Member `usageMetadata` of a response."""

    prompt_token_count: Count = None
    total_token_count: Count = None


class Metadata(Struct):
    """Member `metadata` of a response, in which the specification of texts has the usage."""

    usage: Raw = ABSENT_MEMBER


class Head(Struct, rename="camel", kw_only=True):
    """Members of a response other than its vectors."""

    usage_metadata: Raw = ABSENT_MEMBER
    metadata: Raw = ABSENT_MEMBER
    error: Raw = ABSENT_MEMBER


class ProviderResponse(Head, Generic[Values], rename="camel", kw_only=True):
    """Response of a provider: `embedding` for one content, `embeddings` for a batch."""

    embedding: Vector[Values] | None = None
    embeddings: list[Vector[Values]] | None = None
