"""Check of the URLs that come from providers: URLs of results in their responses, and redirects."""

from urllib.parse import SplitResult, urljoin, urlsplit

from yarl import URL

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb


def resolved(url: str, base: str) -> str:
    """Return a provider's URL, made absolute by `base`. Raise UmgError(UPSTREAM_FAILED) if it is no HTTP URL."""
    try:
        joined = urljoin(base, url)
        if _is_http(urlsplit(joined)) and str(URL(joined)).isprintable():
            return joined
    except ValueError:  # for example of `https://[::1/x` and of a port that is no number
        pass
    message = "the provider's result could not be fetched: the provider names no valid URL"
    raise UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message).with_failure(Failure.AMBIGUOUS)


def _is_http(parts: SplitResult) -> bool:
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0


def origin(url: str) -> tuple[str, str, int | None]:
    """Return the scheme, host and port of a URL that `resolved` has returned."""
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or {"https": 443, "http": 80}.get(parts.scheme)
