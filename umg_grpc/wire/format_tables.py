"""Tables of the wire formats, one for each operation (text, embedding, reranking, images, videos), with one row for
each format.
"""

from pkgutil import resolve_name

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

FORMATS: dict[str, TextFormat] = {name: resolve_name(row.codec) for name, row in TEXT_PROTOCOLS.items()}


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
