"""THE TABLE: every path of the HTTP face. It drives the router, the OpenAPI document and the tests."""

import re
from dataclasses import dataclass
from enum import Enum, auto

DEFAULT_FORMAT = "chat"
"""Whose error body a path gets that belongs to no row."""


class Shape(Enum):
    """What a call looks like; `handlers.py` has one handler for each."""

    GENERATE = auto()  # a body of a text format in, one answer or a stream out
    COUNT_TOKENS = auto()  # the same body in, the number of its tokens out
    EMBED = auto()
    RERANK = auto()
    GET_RESPONSE = auto()
    DELETE_RESPONSE = auto()
    CANCEL_RESPONSE = auto()
    LIST_INPUT_ITEMS = auto()
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
    format: str = DEFAULT_FORMAT  # wire format of the bodies
    needs_key: bool = True
    stream: bool | None = None  # whether the answer is a stream, where the path says so and not the body
    errors: str = ""  # whose error bodies it has, where these are not the format's own

    @property
    def name(self) -> str:
        """The path without what a segment may be made of, for people."""
        return re.sub(r"\{(\w+):.+?\}", r"{\1}", self.path)

    @property
    def error_format(self) -> str:
        """Whose error bodies it has."""
        return self.errors or self.format


@dataclass(frozen=True)
class Unserved:
    """A known API at and below a path, which this gateway does not have."""

    prefix: str
    api: str  # its name, for the message
    method: str = "*"  # the only one that belongs to it, where others of the same path are served


NATIVE_ROOTS = ("/v1beta", "/v1")  # clients of either age (text document, Versioning; newer SDKs call /v1)

NATIVE_ACTIONS = (
    ("generateContent", Shape.GENERATE, "native", False),
    ("streamGenerateContent", Shape.GENERATE, "native", True),
    ("countTokens", Shape.COUNT_TOKENS, "native", None),
    ("embedContent", Shape.EMBED, "native_embedding", None),
    ("batchEmbedContents", Shape.EMBED, "native_embeddings", None),
)
"""(action, shape, format, whether it streams)."""
ACTIONS = tuple(action for action, *_ in NATIVE_ACTIONS)
# what has an action behind it is no model's path, and takes another method
MODEL = f"{{model:(?:(?!:(?:{'|'.join(ACTIONS)})$).)+}}"

ROUTES = (
    Route("POST", "/v1/chat/completions", Shape.GENERATE, "chat"),
    Route("POST", "/v1/responses", Shape.GENERATE, "responses"),
    Route("POST", "/v1/responses/input_tokens", Shape.COUNT_TOKENS, "responses"),
    Route("GET", "/v1/responses/{response_id}", Shape.GET_RESPONSE, "responses"),
    Route("DELETE", "/v1/responses/{response_id}", Shape.DELETE_RESPONSE, "responses"),
    Route("POST", "/v1/responses/{response_id}/cancel", Shape.CANCEL_RESPONSE, "responses"),
    Route("GET", "/v1/responses/{response_id}/input_items", Shape.LIST_INPUT_ITEMS, "responses"),
    Route("POST", "/v1/messages", Shape.GENERATE, "messages"),
    Route("POST", "/v1/messages/count_tokens", Shape.COUNT_TOKENS, "messages", errors="count_tokens"),
    # the action follows the last colon: a model id may have colons and slashes of its own
    *(
        Route("POST", f"{root}/models/{{model:.+}}:{action}", shape, face, stream=stream)
        for root in NATIVE_ROOTS
        for action, shape, face, stream in NATIVE_ACTIONS
    ),
    Route("POST", "/v1/embeddings", Shape.EMBED, "embeddings"),
    Route("POST", "/v1/rerank", Shape.RERANK, "rerank"),
    Route("POST", "/v2/rerank", Shape.RERANK, "rerank_v2"),
    Route("GET", "/v1/models", Shape.LIST_MODELS, "models"),
    Route("GET", f"/v1/models/{MODEL}", Shape.GET_MODEL, "models"),
    Route("GET", "/v1beta/models", Shape.LIST_MODELS, "native_models"),
    Route("GET", f"/v1beta/models/{MODEL}", Shape.GET_MODEL, "native_models"),
    Route("GET", "/", Shape.ALIVE, needs_key=False),  # Claude Code asks HEAD / before anything else
    Route("GET", "/healthz", Shape.ALIVE, needs_key=False),
    Route("GET", "/readyz", Shape.READY, needs_key=False),
    Route("GET", "/metrics", Shape.METRICS, needs_key=False),
)

ASKS_A_MODEL = frozenset({Shape.GENERATE, Shape.COUNT_TOKENS, Shape.EMBED, Shape.RERANK})
_ASKING = {row.path: row for row in ROUTES if row.shape in ASKS_A_MODEL}


def asking(method: str, target: str) -> Route | None:
    """The row of a call that asks a model, by the target as it stands in the request line; None for any other call, and
    for one that is written in an unusual way.
    """
    path = target.partition("?")[0]
    row = _ASKING.get(path)
    if row is None:
        root, models, named = path.partition("/models/")
        row = _ASKING.get(f"{root}{models}{{model:.+}}:{named.rpartition(':')[2]}")
    return row if method == "POST" else None


UNSERVED = (
    Unserved("/v1/assistants", "assistants"),
    Unserved("/v1/audio", "audio"),
    Unserved("/v1/batches", "batches"),
    Unserved("/v1/chat/completions", "stored chat completions"),
    Unserved("/v1/complete", "text completions"),
    Unserved("/v1/completions", "text completions"),
    Unserved("/v1/containers", "containers"),
    Unserved("/v1/conversations", "conversations"),
    Unserved("/v1/evals", "evals"),
    Unserved("/v1/files", "files"),
    Unserved("/v1/fine_tuning", "fine-tuning"),
    Unserved("/v1/images", "images"),
    Unserved("/v1/messages", "message batches"),
    Unserved("/v1/models", "asynchronous embeddings", method="POST"),
    Unserved("/v1/moderations", "moderations"),
    Unserved("/v1/organization", "administration"),
    Unserved("/v1/realtime", "realtime"),
    Unserved("/v1/responses", "further responses"),
    Unserved("/v1/skills", "skills"),
    Unserved("/v1/threads", "assistants"),
    Unserved("/v1/uploads", "uploads"),
    Unserved("/v1/vector_stores", "vector stores"),
    Unserved("/v1/video", "video"),
    Unserved("/v1/videos", "video"),
    Unserved("/v1alpha", "native"),
    Unserved("/v1beta", "native"),
    Unserved("/v1beta/models", "native", method="POST"),
    Unserved("/v2", "second version's"),
    Unserved("/vidD", "video"),
    Unserved("/vidE", "video"),
    Unserved("/vidF", "video"),
    Unserved("/vidG", "video"),
)


UNSERVED_ACTIONS = ("asyncBatchEmbedContent",)
"""Of known APIs."""


def unknown_action(method: str, path: str) -> str:
    """What to say of a call of an action that no model has, or of no model; "" for any other call, and for actions of a
    known API.
    """
    models, _, named = path.partition("/models/")
    model, colon, action = named.rpartition(":")
    if method != "POST" or models not in NATIVE_ROOTS or not named or action in UNSERVED_ACTIONS:
        return ""
    if not colon:
        return f"say what the model is to do: {path}:generateContent, or another of {', '.join(ACTIONS)}"
    if action in ACTIONS and not model:
        return f"no model is named before `:{action}`; call {models}/models/{{model}}:{action}"
    return f"a model has no action `{action}` here; it has {', '.join(ACTIONS)}"


def without_slash(path: str) -> str:
    """The path that a row has, where the caller's has only a slash too many; else ""."""
    bare = path.rstrip("/")
    return bare if bare != path and any(row.path == bare for row in ROUTES) else ""


def unserved(method: str, path: str, *, matched: bool) -> Unserved | None:
    """The known API that a call belongs to which no row of `ROUTES` takes; None where it belongs to none. `matched`:
    whether some row has the path, with another method.
    """
    served, path = {route.path for route in ROUTES}, path.rstrip("/")
    for row in UNSERVED:
        belongs = path.startswith(f"{row.prefix}/") or (path == row.prefix and path not in served)
        if belongs and row.method in ({method} if matched else {"*", method}):
            return row
    return None


ERROR_FORMATS = (
    ("/v1beta/", "native"),
    ("/v1/messages/count_tokens", "count_tokens"),
    ("/v1/messages", "messages"),
    ("/v1/responses", "responses"),
    ("/v1/models", "models"),
    ("/v2/", "rerank_v2"),
)


def error_format(method: str, path: str) -> str:
    """Whose error body a path has that matched no row: that of the API it looks like."""
    if path.startswith("/v1/models/") and (method == "POST" or path.rpartition(":")[2] in ACTIONS):
        return "native"
    return next((name for prefix, name in ERROR_FORMATS if path.startswith(prefix)), DEFAULT_FORMAT)
