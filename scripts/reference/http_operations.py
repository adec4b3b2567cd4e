"""Reference page of the operations over HTTP, from the table of paths."""

from dataclasses import dataclass

from http_facade.exchange.unknown_paths import UNSERVED_ROUTES
from http_facade.openapi.operation_texts import operation_of
from http_facade.routes import ROUTE_TABLE, Route
from scripts.reference.markdown import code, table


@dataclass(frozen=True)
class Operation:
    """HTTP operation: method, path and description."""

    method: str
    path: str
    wire_format: str
    """Format of its bodies; "" for an operation without a key or a signature."""
    access: str
    description: str


def operations() -> list[Operation]:
    """Return all operations, in the order of the table. Paths with a slash at the end are left out."""
    paths = {route.path for route in ROUTE_TABLE}
    shown = [
        route for route in ROUTE_TABLE if route.path == "/" or route.path.removesuffix("/") not in paths - {route.path}
    ]
    return [
        Operation(
            route.method,
            route.name,
            route.format if route.needs_key or route.is_signed else "",
            _access(route),
            _meaning(route),
        )
        for route in shown
    ]


def _access(route: Route) -> str:
    return "key" if route.needs_key else "signature in the address" if route.is_signed else "none"


def _meaning(route: Route) -> str:
    return f"{operation_of(route).summary}.{' Always a stream.' if route.stream else ''}"


HEAD = """# HTTP

Every operation of the HTTP face, from its table of paths. [Fields of all formats](../fields.md) has the fields of the
bodies, [Reasons of errors](errors.md) the errors. Most paths are served with a slash at the end, too; `GET` also serves
`HEAD`.
"""


def page() -> str:
    """Return the reference page of the operations, as Markdown."""
    rows = [
        [f"`{each.method} {each.path}`", code(each.wire_format), each.access, each.description] for each in operations()
    ]
    refused = [
        [code(each.prefix), each.api, "" if each.method == "*" else code(each.method)] for each in UNSERVED_ROUTES
    ]
    return (
        f"{HEAD}\n{table(('operation', 'format', 'access', 'meaning'), rows)}\n## APIs that are not served\n\n"
        "Known APIs at and below these paths are refused with the reason `API_NOT_SERVED`.\n\n"
        f"{table(('path', 'API', 'method'), refused)}"
    )
