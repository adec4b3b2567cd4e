"""JSON body of Cohere's `POST /v2/embed` as typed structs (cohere 7.3.1, `v2/client.py`); null means absent."""

from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct

from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, NonEmpty
from umg_grpc.wire.shared_embedding_checks import Dimensions

EmbeddingType = Literal["float", "int8", "uint8", "binary", "ubinary", "base64"]


class Content(Struct):
    """Part of an element of `inputs`: a text, or an image, which is not read."""

    type: str
    text: str | None = None
    image_url: Raw = ABSENT_MEMBER


class Input(Struct):
    """Element of `inputs`."""

    content: Annotated[list[Content], Meta(min_length=1)]


class EmbedBody(Struct, kw_only=True):
    """Body of `POST /v2/embed`."""

    model: Annotated[str, Meta(min_length=1, max_length=512)]
    texts: Annotated[list[NonEmpty], Meta(min_length=1)] | None = None
    inputs: Annotated[list[Input], Meta(min_length=1)] | None = None
    images: list[str] | None = None
    input_type: Literal["search_document", "search_query", "classification", "clustering", "image"] | None = None
    embedding_types: Annotated[list[EmbeddingType], Meta(min_length=1)] | None = None
    output_dimension: Dimensions | None = None
    truncate: Literal["NONE", "START", "END"] | None = None
    max_tokens: Raw = ABSENT_MEMBER
    priority: Raw = ABSENT_MEMBER


class Types(Struct):
    """Member of a body that selects the types of the vectors in the response."""

    embedding_types: list[EmbeddingType] | None = None
