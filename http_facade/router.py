"""Router: finds the row of the table of routes for the method and the path of a request."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, cast

from aiohttp import web

from http_facade.handlers import Handler
from http_facade.routes import Route

AiohttpHandler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Match(NamedTuple):
    """Route that a request matches, with the parameters in its path."""

    route: Route | None
    """None for no row: the handler then raises web.HTTPNotFound or web.HTTPMethodNotAllowed."""
    handler: Handler
    parameters: Mapping[str, str]
    """Values of the parameters of the path, by their names."""


class Router:
    """Router of a table. Paths without parameters are looked up; aiohttp's router matches the others."""

    def __init__(self, rows: Sequence[tuple[Route, Handler]]) -> None:
        self.exact: dict[tuple[str, str], Match] = {}
        """Matches of the paths without parameters, by method and path."""
        self._patterns = web.UrlDispatcher()
        self._routes: dict[web.AbstractRoute, Route] = {}
        for route, handler in rows:
            for method in ("GET", "HEAD") if route.method == "GET" else (route.method,):
                added = self._patterns.add_route(method, route.path, cast("AiohttpHandler", handler))  # only stored
                self._routes[added] = route
                if "{" not in route.path:
                    self.exact[method, route.path] = Match(route, handler, {})

    async def find(self, request: web.BaseRequest) -> Match:
        """Return the route for the method and the path of a request that is not `exact`."""
        found = await self._patterns.resolve(cast("web.Request", request))  # it reads the method and the URL alone
        handler = cast("Handler", found.handler)
        return Match(None if found.http_exception else self._routes[found.route], handler, found)
