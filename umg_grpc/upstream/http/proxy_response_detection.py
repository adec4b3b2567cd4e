"""Detection of responses that an HTTP proxy made instead of the provider. Only requests without TLS need it: the proxy
forwards these, so that its own responses look like the provider's.
"""

import re
from collections.abc import Mapping

from umg_grpc.base.errors import UmgError
from umg_grpc.base.provider_failure import FailureKind, ProviderFailure
from umg_grpc.upstream.http1.connection_errors import refused_by_proxy
from umg_grpc.wire.errors.error_classification import ProviderError
from umg_grpc.wire.errors.provider_errors import from_provider

PROXY_HEADERS = ("proxy-authenticate", "x-squid-error")
"""Headers of responses that only proxies make (RFC 9110, 11.7.1; Squid)."""
PROXY_SERVERS = re.compile(
    r"squid|tinyproxy|privoxy|polipo|mitmproxy|ziproxy|ccproxy|blue ?coat|zscaler", re.IGNORECASE
)
"""Names of proxies with which the header `server` begins in responses that they make themselves."""
PROXY_ERROR = re.compile(r";\s*error=")
"""Parameter of the header `proxy-status` by which a proxy marks its own responses (RFC 9209, 2.1.1)."""
REFUSAL_STATUSES = frozenset({401, 403, 407})


def is_of_proxy(headers: Mapping[str, str]) -> bool:
    """Return whether a response was made by an HTTP proxy instead of the provider. `headers`: by lower-case name."""
    return (
        any(name in headers for name in PROXY_HEADERS)
        or PROXY_ERROR.search(headers.get("proxy-status", "")) is not None
        or PROXY_SERVERS.match(headers.get("server", "")) is not None
    )


def proxy_refusal(status: int) -> UmgError:
    """Return the error for a response that an HTTP proxy made, with a `status` other than 200."""
    if status in REFUSAL_STATUSES:
        return refused_by_proxy(f"the proxy answered with status {status}")
    failed = from_provider(status, ProviderError())
    message = f"the proxy to the provider failed (status {status}); the operator has to check the channel"
    return failed.with_message(message).with_facts(ProviderFailure(FailureKind.PROXY, status))
