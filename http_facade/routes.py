"""THE TABLE: every path of the HTTP face. It drives the router, the OpenAPI document and the tests."""

from dataclasses import dataclass
from enum import Enum, auto

DEFAULT_FORMAT = "chat"
"""Whose error body a path gets that belongs to no row."""


class Shape(Enum):
    """What a call looks like; `handlers.py` has one handler for each."""

    GENERATE = auto()  # a body of a text format in, one answer or a stream out
    LIST_MODELS = auto()
    GET_MODEL = auto()
    ALIVE = auto()
    READY = auto()
    METRICS = auto()


@dataclass(frozen=True)
class Route:
    """One path with one method."""

    method: str  # GET answers HEAD too
    path: str  # as aiohttp's router writes it; a name in braces stands for one segment, `{name:.+}` for several
    shape: Shape
    format: str = DEFAULT_FORMAT  # wire format of the bodies, errors included
    needs_key: bool = True


@dataclass(frozen=True)
class Unserved:
    """A known API at and below a path, which this gateway does not have."""

    prefix: str
    api: str  # its name, for the message
    method: str = "*"  # the only one that belongs to it, where others of the same path are served


ROUTES = (
    Route("POST", "/v1/chat/completions", Shape.GENERATE, "chat"),
    Route("GET", "/v1/models", Shape.LIST_MODELS, "models"),
    Route("GET", "/v1/models/{model:.+}", Shape.GET_MODEL, "models"),
    Route("GET", "/healthz", Shape.ALIVE, needs_key=False),
    Route("GET", "/readyz", Shape.READY, needs_key=False),
    Route("GET", "/metrics", Shape.METRICS, needs_key=False),
)

UNSERVED = (
    Unserved("/v1/assistants", "assistants"),
    Unserved("/v1/audio", "audio"),
    Unserved("/v1/batches", "batches"),
    Unserved("/v1/chat/completions", "stored chat completions"),
    Unserved("/v1/complete", "text completions"),
    Unserved("/v1/completions", "text completions"),
    Unserved("/v1/containers", "containers"),
    Unserved("/v1/conversations", "conversations"),
    Unserved("/v1/embeddings", "embeddings"),
    Unserved("/v1/evals", "evals"),
    Unserved("/v1/files", "files"),
    Unserved("/v1/fine_tuning", "fine-tuning"),
    Unserved("/v1/images", "images"),
    Unserved("/v1/messages", "messages"),
    Unserved("/v1/models", "native generation", method="POST"),
    Unserved("/v1/moderations", "moderations"),
    Unserved("/v1/organization", "administration"),
    Unserved("/v1/realtime", "realtime"),
    Unserved("/v1/rerank", "rerank"),
    Unserved("/v1/responses", "responses"),
    Unserved("/v1/skills", "skills"),
    Unserved("/v1/threads", "assistants"),
    Unserved("/v1/uploads", "uploads"),
    Unserved("/v1/vector_stores", "vector stores"),
    Unserved("/v1/video", "video"),
    Unserved("/v1/videos", "video"),
    Unserved("/v1alpha", "native"),
    Unserved("/v1beta", "native"),
    Unserved("/v2", "rerank"),
    Unserved("/vidD", "video"),
    Unserved("/vidE", "video"),
    Unserved("/vidF", "video"),
    Unserved("/vidG", "video"),
)


def unserved(method: str, path: str) -> Unserved | None:
    """The known API that a call belongs to which matched no row of `ROUTES`; None where it belongs to none."""
    served, path = {route.path for route in ROUTES}, path.rstrip("/")
    for row in UNSERVED:
        belongs = path.startswith(f"{row.prefix}/") or (path == row.prefix and path not in served)
        if belongs and row.method in {"*", method}:
            return row
    return None
