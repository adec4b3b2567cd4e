"""Bodies of `:embedContent` and `:batchEmbedContents` as typed structs: the text document's fields, and those of
current SDK types. `None` is absent.

Requests are read by structs that refuse what they do not know, so that `native.spelling` looks again where a caller
spelled it in another way.
"""

from typing import Annotated, Generic, TypeVar

from msgspec import Meta, Raw, Struct

from umg_grpc.wire.counts import Count
from umg_grpc.wire.embed import Dimensions
from umg_grpc.wire.json import ABSENT
from umg_grpc.wire.native.schema import NonEmpty

# --- a caller's


class TextPart(Struct, forbid_unknown_fields=True):
    """A part. No other kind is embedded here: one without a text is refused."""

    text: str | None = None


class Content(Struct, forbid_unknown_fields=True):
    """A content; whose turn it is changes nothing."""

    parts: list[TextPart] | None = None
    role: str | None = None


class Options(Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """What is said beside a content."""

    task_type: NonEmpty | None = None
    title: str | None = None
    output_dimensionality: Dimensions | None = None


class Config(Options, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """`embedContentConfig`: the options' newer place, and others that only some providers know."""

    mime_type: Raw = ABSENT
    auto_truncate: Raw = ABSENT
    document_ocr: Raw = ABSENT
    audio_track_extraction: Raw = ABSENT


class EmbedBody(Options, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Body of `:embedContent`, and an element of `requests`. Its model is in the path; one that stands here as well has
    to be the same.
    """

    content: Content | str | None = None
    embed_content_config: Config | None = None
    model: str | None = None


class BatchBody(Struct, forbid_unknown_fields=True, rename="camel", kw_only=True):
    """Body of `:batchEmbedContents`."""

    requests: Annotated[list[EmbedBody], Meta(min_length=1)]
    model: str | None = None


# --- a provider's


Values = TypeVar("Values")
"""Numbers, or `Raw` where these are not read (yet)."""


class Vector(Struct, Generic[Values]):
    """An embedding."""

    values: Values


class UsageMetadata(Struct, rename="camel"):
    """`usageMetadata`."""

    prompt_token_count: Count = None
    total_token_count: Count = None


class Metadata(Struct):
    """`metadata`, as the text document has it."""

    usage: Raw = ABSENT


class Head(Struct, rename="camel", kw_only=True):
    """What an answer says beside its vectors."""

    usage_metadata: Raw = ABSENT
    metadata: Raw = ABSENT
    error: Raw = ABSENT


class ProviderAnswer(Head, Generic[Values], rename="camel", kw_only=True):
    """An answer: `embedding` of one content, `embeddings` of a batch."""

    embedding: Vector[Values] | None = None
    embeddings: list[Vector[Values]] | None = None
