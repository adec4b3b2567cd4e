"""Tables of the text formats of callers, of providers, and of both. Packages of other operations have their own."""

from pkgutil import resolve_name

from umg_grpc.wire.core.rate_limit_headers import RateLimitHeaders, rate_limit_headers
from umg_grpc.wire.provider_protocols import TEXT_PROTOCOLS
from umg_grpc.wire.text_format_interface import TextFace, TextFormat, TextProviderFormat

FACES_ALONE: tuple[str, ...] = (
    "umg_grpc.wire.ollama:OLLAMA_CHAT",
    "umg_grpc.wire.ollama:OLLAMA_GENERATE",
    "umg_grpc.wire.cohere:COHERE_FACE",
)
"""Locations (`module:name`) of the formats that only callers use."""
TEXT_UPSTREAMS: dict[str, TextProviderFormat] = {name: resolve_name(row.codec) for name, row in TEXT_PROTOCOLS.items()}
"""Formats of providers by name."""
TEXT_FORMATS: dict[str, TextFormat] = {
    name: codec for name, codec in TEXT_UPSTREAMS.items() if isinstance(codec, TextFormat)
}
"""Formats that both callers and providers use, by name."""
TEXT_FACES: dict[str, TextFace] = {**TEXT_FORMATS, **{face.name: face for face in map(resolve_name, FACES_ALONE)}}
"""Formats of callers by name."""


def headers_of_limits(name: str) -> RateLimitHeaders:
    """Return the encoder of a format's rate limit headers: of `x-ratelimit-*` unless the format has other ones."""
    return TEXT_FACES[name].rate_limit_headers if name in TEXT_FACES else rate_limit_headers


def stores_by_default(name: str) -> bool:
    """Return whether a text format stores responses unless the request forbids it; False for an unknown format."""
    return name in TEXT_FACES and TEXT_FACES[name].stores_by_default
