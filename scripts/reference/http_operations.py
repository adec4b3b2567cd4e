"""Operations of HTTP, from the table of paths."""

from dataclasses import dataclass

from http_facade.routes import ROUTES, UNSERVED, Route, Shape
from scripts.reference.markdown import code, table

MEANINGS = {
    Shape.GENERATE: "Generates an answer, whole or as a stream.",
    Shape.COUNT_TOKENS: "Counts the tokens of a request without calling a model.",
    Shape.EMBED: "Makes vectors of texts.",
    Shape.GENERATE_IMAGE: "Makes or edits images, whole or as a stream.",
    Shape.RERANK: "Ranks documents by a query.",
    Shape.CREATE_VIDEO: "Submits a video task.",
    Shape.GET_VIDEO: "Returns the state of a video task.",
    Shape.LIST_VIDEOS: "Lists the video tasks of the key.",
    Shape.DELETE_VIDEO: "Deletes a video task, or cancels it.",
    Shape.REMIX_VIDEO: "Submits a task that changes a finished video.",
    Shape.GET_VIDEO_CONTENT: "Returns the file of a finished video task.",
    Shape.RECEIVE_VIDEO_CALLBACK: "Receives a provider's notification about a task.",
    Shape.GET_RESPONSE: "Returns a stored response.",
    Shape.DELETE_RESPONSE: "Deletes a stored response.",
    Shape.CANCEL_RESPONSE: "Cancels a response that is generated in the background.",
    Shape.LIST_INPUT_ITEMS: "Lists the input items of a stored response.",
    Shape.LIST_MODELS: "Lists the models that the key may use.",
    Shape.GET_MODEL: "Returns a model that the key may use.",
    Shape.CREATE_KEY: "Creates a key and returns its secret.",
    Shape.LIST_KEYS: "Lists keys.",
    Shape.GET_KEY: "Returns a key.",
    Shape.UPDATE_KEY: "Changes the permissions and limits of a key.",
    Shape.ROTATE_KEY: "Gives a key a new secret.",
    Shape.REVOKE_KEY: "Revokes a key.",
    Shape.GET_USAGE: "Returns the usage of a key.",
    Shape.LIST_USAGE: "Returns usage by time, key, model, channel or operation.",
    Shape.LIST_REQUESTS: "Lists the records of calls.",
    Shape.GET_REQUEST: "Returns the record of a call.",
    Shape.LIST_CHANNELS: "Returns the state of the channels.",
    Shape.GET_FILE: "Returns a result file.",
    Shape.CALL_METHOD: "Calls a method of the schema by the Connect protocol or gRPC-Web.",
    Shape.ALIVE: "Answers while the process runs.",
    Shape.READY: "Answers whether the process can serve calls.",
    Shape.METRICS: "Returns the metrics for Prometheus.",
}
"""Meaning of each kind of operation."""


@dataclass(frozen=True)
class Operation:
    """Operation at a path."""

    method: str
    path: str
    wire_format: str
    """Format of its bodies; "" for an operation without a key or a signature."""
    access: str
    description: str


def operations() -> list[Operation]:
    """Return all operations, in the order of the table. Paths with a slash at the end are left out."""
    paths = {route.path for route in ROUTES}
    shown = [route for route in ROUTES if route.path == "/" or route.path.removesuffix("/") not in paths - {route.path}]
    return [
        Operation(route.method, route.name, "" if route.is_probe else route.format, _access(route), _meaning(route))
        for route in shown
    ]


def _access(route: Route) -> str:
    return "key" if route.needs_key else "signature in the address" if route.is_signed else "none"


def _meaning(route: Route) -> str:
    return MEANINGS.get(route.shape, "") + (" Always a stream." if route.stream else "")


HEAD = """# HTTP

Every operation of the HTTP face, from its table of paths. [Fields of all formats](../fields.md) has the fields of the
bodies, [Reasons of errors](errors.md) the errors. Most paths are served with a slash at the end, too; `GET` also serves
`HEAD`.
"""


def page() -> str:
    """Return the page of the operations."""
    rows = [
        [f"`{each.method} {each.path}`", code(each.wire_format), each.access, each.description] for each in operations()
    ]
    refused = [[code(each.prefix), each.api, "" if each.method == "*" else code(each.method)] for each in UNSERVED]
    return (
        f"{HEAD}\n{table(('operation', 'format', 'access', 'meaning'), rows)}\n## APIs that are not served\n\n"
        "Known APIs at and below these paths are refused with the reason `API_NOT_SERVED`.\n\n"
        f"{table(('path', 'API', 'method'), refused)}"
    )
