"""Paths without a route: the known API, or the route, that their callers mean, and the format of their errors."""

import re
from dataclasses import dataclass

from http_facade.path_spellings import API_VERSIONS, canonical_path
from http_facade.routes import (
    ACTION_NAMES,
    ACTIONS_FORMAT,
    DEFAULT_FORMAT,
    DEPLOYMENT_ROUTES,
    METHOD_ROUTES,
    NATIVE_ROOTS,
    ROUTE_TABLE,
    model_call_route,
)
from umg_grpc.operations.wire_formats_by_name import all_faces

_METHOD_PATH = re.compile(r"/[a-z][\w.]*\.[A-Z]\w*/[A-Z]\w*")
"""Paths of methods, as gRPC has them, of this schema or another."""


@dataclass(frozen=True)
class Unserved:
    """Documented API of a vendor that this gateway does not serve, and the path at or below which it would be."""

    prefix: str
    api: str  # its name in error messages
    method: str = "*"  # its only method, if the gateway serves other methods of the path; `*` is any
    is_alone: bool = False  # whether paths below are of other APIs


UNSERVED_ROUTES = (
    Unserved("/openai/deployments", "further deployments"),
    *(Unserved(f"/api/{name}", "Ollama models") for name in ("blobs", "copy", "create", "delete", "pull", "push")),
    Unserved("/v1/assistants", "assistants"),
    Unserved("/v1/audio", "further audio"),
    Unserved("/v1/batches", "batches"),
    Unserved("/v1/chat/completions", "stored chat completions"),
    Unserved("/v1/chat", "first version of Cohere's chat", is_alone=True),
    Unserved("/v1/complete", "text completions"),
    Unserved("/v1/completions", "text completions"),
    Unserved("/v1/containers", "containers"),
    Unserved("/v1/conversations", "conversations"),
    Unserved("/v1/evals", "evals"),
    Unserved("/v1/files", "files"),
    Unserved("/v1/fine_tuning", "fine-tuning"),
    Unserved("/v1/images", "further images"),
    Unserved("/v1/messages", "message batches"),
    Unserved("/v1/models", "asynchronous embeddings", method="POST"),
    Unserved("/v1/organization", "administration"),
    Unserved("/v1/realtime", "realtime"),
    Unserved("/v1/responses", "further responses"),
    Unserved("/v1/skills", "skills"),
    Unserved("/v1/threads", "assistants"),
    Unserved("/v1/uploads", "uploads"),
    Unserved("/v1/vector_stores", "vector stores"),
    Unserved("/v1/video", "further video"),
    Unserved("/v1/videos/characters", "characters of videos", method="POST"),
    Unserved("/v1/videos/edits", "edits of videos", method="POST"),
    Unserved("/v1/videos/extensions", "extensions of videos", method="POST"),
    Unserved("/v1/videos", "further video"),
    Unserved("/v1alpha", "native"),
    Unserved("/v1beta", "native"),
    Unserved("/v1beta/models", "native", method="POST"),
    Unserved("/v2", "second version's"),
    Unserved("/vidD", "further video"),
    Unserved("/vidE", "further video"),
    Unserved("/vidF", "further video"),
    Unserved("/vidG", "further video"),
)
"""Known APIs without a route, for their errors."""


_VERSIONED_PATHS = frozenset(row.path for row in ROUTE_TABLE if row.path.split("/")[1] in API_VERSIONS)
MAX_SIMILAR_SEGMENTS = 12
"""Most segments at the end of an unknown path that are compared with the table."""


def similar_path(path: str) -> str:
    """Return the served path that is the end of an unknown path, apart from the version; "" if there is none."""
    segments = [segment for segment in path.split("/") if segment][-MAX_SIMILAR_SEGMENTS:]
    for at in range(len(segments)):
        meant = canonical_path("/".join(segments[at:]))
        if meant in _VERSIONED_PATHS or ("/:" not in meant and model_call_route("POST", meant) is not None):
            return meant
    return ""


def is_served_root(prefix: str) -> bool:
    """Return whether a prefix is a version, or a path with a route. A client may add a served path to it by mistake."""
    return prefix.count("/") == 1 or prefix in _VERSIONED_PATHS


UNSERVED_ACTIONS = ("asyncBatchEmbedContent",)
"""Actions of known APIs that this gateway does not serve."""


def unknown_action(method: str, path: str) -> str:
    """Return the error message for a path `/models/{model}:{action}` with an unknown action or without a model. It is
    "" for any other path, and for actions that `unserved` reports.
    """
    models, _, named = path.partition("/models/")
    model, colon, action = named.rpartition(":")
    if method != "POST" or models not in NATIVE_ROOTS or not named or action in UNSERVED_ACTIONS:
        return ""
    if not colon:
        return f"name an action of the model: {path}:generateContent, or another of {', '.join(ACTION_NAMES)}"
    if action in ACTION_NAMES and not model:
        return f"no model is named before `:{action}`; call {models}/models/{{model}}:{action}"
    return f"a model has no action `{action}` here; it has {', '.join(ACTION_NAMES)}"


def unnamed_deployment(path: str) -> str:
    """Return the error message for a path of a deployment without its id; "" for any other path."""
    row = next((row for row in DEPLOYMENT_ROUTES if path == row.path.replace("/{deployment:.+}", "")), None)
    return "" if row is None else f"no deployment is named in {path}; call {row.name} with the id of the model"


def without_slash(path: str) -> str:
    """Return the path without trailing slashes if a route has that path; otherwise ""."""
    bare = path.rstrip("/")
    if bare == path:
        return ""
    return bare if any(row.path == bare for row in ROUTE_TABLE) or model_call_route("POST", bare) is not None else ""


def unserved(method: str, path: str, *, matched: bool) -> Unserved | None:
    """Return the known API to which a path without a route belongs, and which this gateway does not serve; None if
    there is none. `matched`: the path has a route with another method.
    """
    served, path = {route.path for route in ROUTE_TABLE}, path.rstrip("/")
    for row in UNSERVED_ROUTES:
        is_below = not row.is_alone and path.startswith(f"{row.prefix}/")
        belongs = is_below or (path == row.prefix and path not in served)
        if belongs and row.method in ({method} if matched else {"*", method}):
            return row
    return None


def error_format(method: str, path: str) -> str:
    """Return the error format for a path without a route: of the route or API with the longest common start."""
    if _METHOD_PATH.fullmatch(path):
        return METHOD_ROUTES[0].format
    meant = canonical_path(path)
    if (meant or path).startswith("/v1/models/") and (method == "POST" or path.rpartition(":")[2] in ACTION_NAMES):
        return ACTIONS_FORMAT
    rows = [(row.path, row.error_format) for row in ROUTE_TABLE]
    rows += ((prefix, face.name) for face in all_faces() for prefix in face.error_paths)
    begun = (row for row in rows if path.startswith(row[0]) or meant.startswith(row[0]))
    return max(begun, key=lambda row: len(row[0]), default=("", DEFAULT_FORMAT))[1]
