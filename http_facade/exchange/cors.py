"""Cross-origin requests (CORS): web pages that may call the gateway and read its responses (Fetch standard, "CORS")."""

from collections.abc import Collection, Mapping

from aiohttp import hdrs, web

from http_facade.routes import ROUTE_TABLE

ALLOWED_METHODS = ", ".join(sorted({route.method for route in ROUTE_TABLE} | {"HEAD"}))
EXPOSED_HEADERS = "x-request-id, retry-after, x-should-retry, *"
"""Response headers that pages may read. `*` covers the `x-umg-*` headers; the others are for older browsers."""
PREFLIGHT_SECONDS = "600"


class CorsRules:
    """Rules by which web pages of other origins may call the gateway: allowed origins, `*` for all; none by default."""

    def __init__(self, origins: Collection[str]) -> None:
        self._origins = frozenset(origins)
        self.enabled = bool(origins)

    def preflight(self, request: web.BaseRequest) -> web.Response | None:
        """Return the response to a preflight request. None for other requests and for origins that are not allowed."""
        method = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_METHOD)
        if request.method != hdrs.METH_OPTIONS or method is None or self._allowed(request.headers) is None:
            return None
        headers = {
            hdrs.ACCESS_CONTROL_ALLOW_METHODS: ALLOWED_METHODS,
            hdrs.ACCESS_CONTROL_ALLOW_HEADERS: request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, ""),
            hdrs.ACCESS_CONTROL_MAX_AGE: PREFLIGHT_SECONDS,
            hdrs.VARY: "Access-Control-Request-Headers",
        }
        return web.Response(status=204, headers=headers)

    def headers(self, request_headers: Mapping[str, str]) -> dict[str, str]:
        """Return the CORS headers that permit the calling page to read the response; empty for a disallowed origin."""
        if not self.enabled:
            return {}
        allowed, headers = self._allowed(request_headers), dict[str, str]()
        if allowed is not None:
            headers |= {hdrs.ACCESS_CONTROL_ALLOW_ORIGIN: allowed, hdrs.ACCESS_CONTROL_EXPOSE_HEADERS: EXPOSED_HEADERS}
        if allowed != "*":
            headers[hdrs.VARY] = "Origin"  # the response to another origin, or to none, differs
        return headers

    def _allowed(self, request_headers: Mapping[str, str]) -> str | None:
        if "*" in self._origins:
            return "*"
        origin = request_headers.get(hdrs.ORIGIN)
        return origin if origin in self._origins else None
