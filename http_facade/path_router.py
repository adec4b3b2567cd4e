"""Router: finds the route for the method and the path of an HTTP request."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, cast

from aiohttp import web
from yarl import URL

from http_facade.handlers.route_handlers import Handler
from http_facade.path_spellings import canonical_path
from http_facade.routes import Route


class RouteMatch(NamedTuple):
    """Result of a look-up: the route (None for an unknown path or method), its handler, the path's parameters."""

    route: Route | None
    """None for no row: the handler then raises web.HTTPNotFound or web.HTTPMethodNotAllowed."""
    handler: Handler
    parameters: Mapping[str, str]


class PathRouter:
    """Finder of a request's route. The first request of a route creates its handler: most processes use few routes."""

    def __init__(self, rows: Sequence[Route], make_handler: Callable[[Route], Handler]) -> None:
        """Create a router for the routes `rows`; `make_handler` creates the handler of one route."""
        self._rows = tuple(rows)
        self._make_handler = make_handler
        self._handlers = dict[int, Handler]()  # by the position of their row
        self._patterns, self._positions = _patterns_of(self._rows)
        self.exact = dict[tuple[str, str], RouteMatch]()
        """Matches of the requests so far whose path has no parameters, by method and path; faster than `find`."""

    async def find(self, request: web.BaseRequest) -> RouteMatch:
        """Find the route of a request by aiohttp's router. If the path has no route, its canonical spelling is looked
        up. A match without parameters is also stored in `exact`. Without a route, the handler raises aiohttp's
        exception.
        """
        found = await self._resolve(request)
        if found.http_exception:
            return RouteMatch(None, cast("Handler", found.handler), found)
        position = self._positions[found.route]
        route, handler = self._rows[position], self._handlers.get(position)
        if handler is None:
            handler = self._handlers[position] = self._make_handler(route)
        if found:
            return RouteMatch(route, handler, found)
        match = self.exact[request.method, route.path] = RouteMatch(route, handler, {})
        return match

    async def _resolve(self, request: web.BaseRequest) -> web.UrlMappingMatchInfo:
        """Return aiohttp's match for a request. aiohttp's router reads the method and the URL alone."""
        found = await self._patterns.resolve(cast("web.Request", request))
        if not isinstance(found.http_exception, web.HTTPNotFound):
            return found
        if not (meant := canonical_path(request.rel_url.raw_path)):
            return found
        spelled = request.clone(rel_url=URL.build(path=meant, encoded=True))
        canonical = await self._patterns.resolve(cast("web.Request", spelled))
        return found if isinstance(canonical.http_exception, web.HTTPNotFound) else canonical


@lru_cache(maxsize=4)  # a process has one table, and its tests some more
def _patterns_of(table: tuple[Route, ...]) -> tuple[web.UrlDispatcher, Mapping[web.AbstractRoute, int]]:
    patterns, positions = web.UrlDispatcher(), dict[web.AbstractRoute, int]()
    for position, route in enumerate(table):
        for method in ("GET", "HEAD") if route.method == "GET" else (route.method,):
            positions[patterns.add_route(method, route.path, _matched)] = position
    return patterns, positions


async def _matched(_: web.Request) -> web.StreamResponse:
    """Raise NotImplementedError: aiohttp's router requires a handler for each route, and never calls it here."""
    raise NotImplementedError
