"""Table of the text formats, with one row for each. Each other operation has the table of its formats in its room."""

from pkgutil import resolve_name

from umg_grpc.wire.core.rate_limit_headers import RateLimitHeaders, rate_limit_headers
from umg_grpc.wire.provider_protocols import TEXT_PROTOCOLS
from umg_grpc.wire.text_format import TextFormat

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
