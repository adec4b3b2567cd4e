"""Which browsers' pages may call, and read what they get (Fetch standard, "CORS protocol")."""

from collections.abc import Collection, Mapping

from aiohttp import hdrs, web

from http_facade.routes import ROUTES

METHODS = ", ".join(sorted({route.method for route in ROUTES} | {"HEAD"}))
EXPOSED = "x-request-id, retry-after, x-should-retry, *"
"""`*` stands for the `x-umg-*` headers, whose names cannot be told beforehand; the others also for older browsers."""
PREFLIGHT_SECONDS = "600"


class Cors:
    """Answers to pages of the origins that the operator named; `*` names all, none is the default."""

    def __init__(self, origins: Collection[str]) -> None:
        self._origins = frozenset(origins)
        self.enabled = bool(origins)

    def preflight(self, request: web.Request) -> web.Response | None:
        """The answer to a browser that asks before it calls. None for any other request and for other origins."""
        method = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_METHOD)
        if request.method != hdrs.METH_OPTIONS or method is None or self._allowed(request.headers) is None:
            return None
        headers = {
            hdrs.ACCESS_CONTROL_ALLOW_METHODS: METHODS,
            hdrs.ACCESS_CONTROL_ALLOW_HEADERS: request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_HEADERS, ""),
            hdrs.ACCESS_CONTROL_MAX_AGE: PREFLIGHT_SECONDS,
            hdrs.VARY: "Access-Control-Request-Headers",
        }
        return web.Response(status=204, headers=headers)

    def mark(self, asked: Mapping[str, str], response: web.StreamResponse) -> None:
        """Adds to any answer what lets the page read it. `asked`: headers of the request."""
        if not self.enabled:
            return
        allowed = self._allowed(asked)
        if allowed is not None:
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = allowed
            response.headers[hdrs.ACCESS_CONTROL_EXPOSE_HEADERS] = EXPOSED
        if allowed != "*":
            response.headers.add(hdrs.VARY, "Origin")  # the answer to another origin, or to none, is another one

    def _allowed(self, asked: Mapping[str, str]) -> str | None:
        """What the answer says of the caller's origin; None where it may not call or is no browser."""
        if "*" in self._origins:
            return "*"
        origin = asked.get(hdrs.ORIGIN)
        return origin if origin in self._origins else None
