"""Bodies of `:embedContent` and `:batchEmbedContents` as typed structs: the text document's fields, and those of
current SDK types. `None` means absent.

Requests are decoded by structs that reject unknown fields, so that `native.proto_json_normalization` normalizes a body
in another spelling.
"""

from typing import Annotated, Generic, TypeVar

from msgspec import Meta, Raw, Struct

from umg_grpc.wire.core.json import ABSENT, NonEmpty
from umg_grpc.wire.core.lenient_numbers import Count
from umg_grpc.wire.shared_embedding_checks import Dimensions

# --- structs of a caller's body


class TextPart(Struct, forbid_unknown_fields=True):
    """Part of a content. No other kind is embedded: a part without text is rejected."""

    text: str | None = None


class Content(Struct, forbid_unknown_fields=True):
    """Member `content`: the text to embed; its role has no effect."""

    parts: list[TextPart] | None = None
    role: str | None = None


class Options(Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Options of an embedding, which are members beside its content."""

    task_type: NonEmpty | None = None
    title: str | None = None
    output_dimensionality: Dimensions | None = None


class Config(Options, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Member `embedContentConfig`: the newer member for the options, and further options that only some
    providers have.
    """

    mime_type: Raw = ABSENT
    auto_truncate: Raw = ABSENT
    document_ocr: Raw = ABSENT
    audio_track_extraction: Raw = ABSENT


class EmbedBody(Options, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Body of `:embedContent`, and element of `requests` in a batch. Its model is in the path; a model in the body must
    be the same.
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
"""Numbers, or `Raw` where they are not decoded (yet)."""


class Vector(Struct, Generic[Values]):
    """Vector of one input in an answer."""

    values: Values


class UsageMetadata(Struct, rename="camel"):
    """Member `usageMetadata` of an answer."""

    prompt_token_count: Count = None
    total_token_count: Count = None


class Metadata(Struct):
    """Member `metadata` of an answer, as the text document defines it."""

    usage: Raw = ABSENT


class Head(Struct, rename="camel", kw_only=True):
    """Members of an answer other than its vectors."""

    usage_metadata: Raw = ABSENT
    metadata: Raw = ABSENT
    error: Raw = ABSENT


class ProviderAnswer(Head, Generic[Values], rename="camel", kw_only=True):
    """Answer of a provider: `embedding` of one content, `embeddings` of a batch."""

    embedding: Vector[Values] | None = None
    embeddings: list[Vector[Values]] | None = None
