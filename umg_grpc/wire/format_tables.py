"""Tables of the wire formats, one for each operation (text, embedding, reranking, images, videos), with one row for
each format.
"""

from pkgutil import resolve_name
from typing import TypeAlias

from umg_grpc.v1 import pb
from umg_grpc.wire.core.rate_limit_headers import RateLimitHeaders, rate_limit_headers
from umg_grpc.wire.embeddings import EMBEDDINGS
from umg_grpc.wire.image_format import ImageFormat
from umg_grpc.wire.images import IMAGE_EDITS, IMAGE_VARIATIONS, IMAGES
from umg_grpc.wire.native_embeddings import NATIVE_EMBEDDING, NATIVE_EMBEDDINGS
from umg_grpc.wire.provider_protocols import TEXT_PROTOCOLS
from umg_grpc.wire.rerank import RERANK, RERANK_V2
from umg_grpc.wire.text_format import TextFormat
from umg_grpc.wire.unary_format import UnaryFormat
from umg_grpc.wire.video import VIDEO_FACES
from umg_grpc.wire.video.caller_api_interface import EntryFormat

AnyFormat: TypeAlias = (
    TextFormat
    | UnaryFormat[pb.EmbedRequest, pb.EmbedResponse]
    | UnaryFormat[pb.RerankRequest, pb.RerankResponse]
    | ImageFormat
)

FORMATS: dict[str, TextFormat] = {name: resolve_name(row.codec) for name, row in TEXT_PROTOCOLS.items()}


def all_formats() -> tuple[AnyFormat, ...]:
    """Return the formats of text, embedding, reranking and image operations; the HTTP APIs of videos are not among
    them.
    """
    return (*FORMATS.values(), *EMBEDDING_FORMATS.values(), *RERANK_FORMATS.values(), *IMAGE_FORMATS.values())


def codec_of(name: str) -> AnyFormat | None:
    """Return the text, embedding, rerank or image format with this name; None for an unknown name and for videos."""
    tables = (FORMATS, EMBEDDING_FORMATS, RERANK_FORMATS, IMAGE_FORMATS)
    return next((table[name] for table in tables if name in table), None)


def face_of(name: str) -> AnyFormat | EntryFormat | None:
    """Return the format with this name for callers, including the HTTP APIs of videos; None for an unknown name."""
    return codec_of(name) or VIDEO_FACES.get(name)


def headers_of_limits(name: str) -> RateLimitHeaders:
    """Return the function that encodes a caller's rate limits as response headers of the format `name`;
    `x-ratelimit-*` headers for all formats without their own.
    """
    return FORMATS[name].rate_limit_headers if name in FORMATS else rate_limit_headers


def stores_by_default(name: str) -> bool:
    """Return whether the text format `name` stores responses unless the request forbids it; False for an unknown
    format.
    """
    return name in FORMATS and FORMATS[name].stores_by_default


EMBEDDING_FORMATS: dict[str, UnaryFormat[pb.EmbedRequest, pb.EmbedResponse]] = {
    EMBEDDINGS.name: EMBEDDINGS,
    NATIVE_EMBEDDINGS.name: NATIVE_EMBEDDINGS,
    NATIVE_EMBEDDING.name: NATIVE_EMBEDDING,
}

RERANK_FORMATS: dict[str, UnaryFormat[pb.RerankRequest, pb.RerankResponse]] = {
    RERANK.name: RERANK,
    RERANK_V2.name: RERANK_V2,
}

IMAGE_FORMATS: dict[str, ImageFormat] = {
    IMAGES.name: IMAGES,
    IMAGE_EDITS.name: IMAGE_EDITS,
    IMAGE_VARIATIONS.name: IMAGE_VARIATIONS,
}
