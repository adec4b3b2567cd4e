"""Table of all HTTP paths of the gateway, from which the router, the OpenAPI document and the tests are built."""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum, auto

from umg_grpc.operations import ADMINISTRATIVE_SERVICES, OPERATION_ROWS, UNARY_OPERATIONS

DEFAULT_FORMAT = "chat"
"""Format of the error bodies for paths that match no route."""


class Shape(Enum):
    """Kind of operation, for example text generation or the list of models; each has one handler."""

    GENERATE = auto()  # takes a body of a text format, answers with a body or a stream
    COMPACT = auto()  # takes the same body, answers with a summary of the conversation
    COUNT_TOKENS = auto()  # takes the same body, answers with the number of its tokens
    UNARY = auto()  # takes a body of an operation with one response, answers with a body
    GENERATE_IMAGE = auto()  # takes a body or a form, answers with images or a stream
    CREATE_VIDEO = auto()  # takes a body or a form of an entry, answers with the new task
    GET_VIDEO = auto()
    LIST_VIDEOS = auto()
    DELETE_VIDEO = auto()
    REMIX_VIDEO = auto()
    GET_VIDEO_CONTENT = auto()
    RECEIVE_VIDEO_CALLBACK = auto()
    GET_RESPONSE = auto()
    DELETE_RESPONSE = auto()
    CANCEL_RESPONSE = auto()
    LIST_INPUT_ITEMS = auto()
    LIST_MODELS = auto()
    GET_MODEL = auto()
    GET_VERSION = auto()  # takes nothing, answers with the version of the format's API
    CREATE_KEY = auto()
    LIST_KEYS = auto()
    GET_KEY = auto()
    UPDATE_KEY = auto()
    ROTATE_KEY = auto()
    REVOKE_KEY = auto()
    GET_USAGE = auto()
    LIST_USAGE = auto()
    LIST_END_USER_USAGE = auto()
    GET_CALL_SUMMARY = auto()
    LIST_REQUESTS = auto()
    GET_REQUEST = auto()
    LIST_CHANNELS = auto()
    LIST_CHANNEL_DETAILS = auto()
    CHECK_CHANNEL = auto()
    UPDATE_CHANNEL = auto()
    LIST_MODEL_PRICES = auto()
    UPDATE_MODEL_PRICE = auto()
    LIST_ALERTS = auto()
    TEST_ALERT_RECEIVER = auto()
    CREATE_ORGANIZATION = auto()
    LIST_ORGANIZATIONS = auto()
    GET_ORGANIZATION = auto()
    UPDATE_ORGANIZATION = auto()
    CLOSE_ORGANIZATION = auto()
    OPEN_ORGANIZATION = auto()
    CREATE_PROJECT = auto()
    LIST_PROJECTS = auto()
    GET_PROJECT = auto()
    UPDATE_PROJECT = auto()
    CLOSE_PROJECT = auto()
    OPEN_PROJECT = auto()
    CREATE_USER = auto()
    LIST_USERS = auto()
    GET_USER = auto()
    GET_CALLER = auto()
    UPDATE_USER = auto()
    LIST_SESSIONS = auto()
    END_SESSION = auto()
    LIST_AUDIT_EVENTS = auto()
    LIST_TASKS = auto()
    GET_TASK = auto()
    REDELIVER_CALLBACK = auto()
    GET_CONFIG = auto()
    GET_FILE = auto()
    CALL_METHOD = auto()  # takes a message of the schema by the Connect protocol, answers with one or a stream
    ALIVE = auto()
    READY = auto()
    METRICS = auto()
    HOME = auto()  # takes nothing, leads browsers to the playground, and answers as `ALIVE` to programs
    PLAYGROUND = auto()
    DOCS = auto()
    ASSET = auto()
    OPENAPI = auto()
    SIGN_IN_PAGE = auto()  # takes nothing, answers with a page or leads a browser to an issuer
    SIGN_IN = auto()  # takes a form, opens a session
    SIGN_IN_CALLBACK = auto()  # takes the query of an issuer's redirect, opens a session
    SIGN_OUT = auto()
    GET_SESSION = auto()
    CONSOLE_PAGE = auto()
    CONSOLE_FORM = auto()  # takes a form of a page, leads the browser on or shows a result once


SIGN_ON_SHAPES = frozenset(
    {Shape.SIGN_IN_PAGE, Shape.SIGN_IN, Shape.SIGN_IN_CALLBACK, Shape.SIGN_OUT, Shape.GET_SESSION}
)
"""Sign-on of people, which a service in the same process performs."""
CONSOLE_SHAPES = frozenset({Shape.CONSOLE_PAGE, Shape.CONSOLE_FORM})
"""Console, which acts by the sessions of people."""
PAGE_SHAPES = frozenset({Shape.PLAYGROUND, Shape.DOCS, Shape.ASSET, Shape.OPENAPI, *SIGN_ON_SHAPES, *CONSOLE_SHAPES})
"""Pages for people and their parts, which are not served with `pages: false`."""
PROBE_SHAPES = frozenset({Shape.ALIVE, Shape.READY, Shape.METRICS, Shape.HOME})


@dataclass(frozen=True)
class Route:
    """Row of the table of routes: method and path, kind and wire format of an operation, authentication of callers."""

    method: str  # GET also serves HEAD
    path: str  # in the syntax of aiohttp's router: `{name}` matches one segment, `{name:.+}` several
    shape: Shape
    format: str = DEFAULT_FORMAT  # wire format of the bodies
    needs_key: bool = True
    is_signed: bool = False  # whether its path has a signature, which replaces the key
    stream: bool | None = None  # whether the response is a stream; None if the body selects it
    errors: str = ""  # format of the error bodies, if not `format`
    kind: str = ""  # kind of a video task, for a path of one kind

    @property
    def name(self) -> str:
        """Path without the patterns of its parameters, for logs and documents."""
        return re.sub(r"\{(\w+):.+?\}", r"{\1}", self.path)

    @property
    def is_probe(self) -> bool:
        """Whether the route is a health check or the metrics, served even under overload and during a shutdown."""
        return self.shape in PROBE_SHAPES

    @property
    def error_format(self) -> str:
        """Name of the wire format of the route's error bodies."""
        return self.errors or self.format


NATIVE_ROOTS = ("/v1beta", "/v1")  # both are called by clients (text document, Versioning; newer SDKs call /v1)

NATIVE_ACTIONS = (
    ("generateContent", Shape.GENERATE, "native", False),
    ("streamGenerateContent", Shape.GENERATE, "native", True),
    ("countTokens", Shape.COUNT_TOKENS, "native", None),
    ("embedContent", Shape.UNARY, "native_embedding", None),
    ("batchEmbedContents", Shape.UNARY, "native_embeddings", None),
)
"""Actions of native paths: (action, shape, format, whether the response is a stream)."""
ACTION_NAMES = tuple(action for action, *_ in NATIVE_ACTIONS)
ACTIONS_FORMAT = NATIVE_ACTIONS[0][2]
# a path that ends with an action is no model resource, and has another method
MODEL_SEGMENT = f"{{model:(?:(?!:(?:{'|'.join(ACTION_NAMES)})$).)+}}"


def _both(method: str, path: str, shape: Shape, face: str, kind: str = "") -> tuple[Route, Route]:
    signed = shape is Shape.RECEIVE_VIDEO_CALLBACK
    route = Route(method, path, shape, face, needs_key=not signed, is_signed=signed, kind=kind)
    return route, replace(route, path=f"{path}/")


_D_TASKS = "/vidD/api/v3/contents/generations/tasks"
_E_V1 = "/vidE/v1/videos"
VIDEO_ROUTES = (
    *_both("POST", "/v1/video/generations", Shape.CREATE_VIDEO, "video"),
    *_both("GET", "/v1/video/generations/{task_id}", Shape.GET_VIDEO, "video"),
    *_both("POST", "/v1/videos", Shape.CREATE_VIDEO, "video_object"),
    *_both("GET", "/v1/videos", Shape.LIST_VIDEOS, "video_object"),
    *_both("GET", "/v1/videos/{task_id}", Shape.GET_VIDEO, "video_object"),
    *_both("DELETE", "/v1/videos/{task_id}", Shape.DELETE_VIDEO, "video_object"),
    *_both("POST", "/v1/videos/{video_id}/remix", Shape.REMIX_VIDEO, "video_object"),
    *_both("GET", "/v1/videos/{task_id}/content", Shape.GET_VIDEO_CONTENT, "video_object"),
    *_both("POST", _D_TASKS, Shape.CREATE_VIDEO, "video_d"),
    *_both("GET", f"{_D_TASKS}/{{task_id}}", Shape.GET_VIDEO, "video_d"),
    *_both("POST", f"{_E_V1}/text2video", Shape.CREATE_VIDEO, "video_e_v1", "text2video"),
    *_both("POST", f"{_E_V1}/image2video", Shape.CREATE_VIDEO, "video_e_v1", "image2video"),
    *_both("GET", f"{_E_V1}/text2video/{{task_id}}", Shape.GET_VIDEO, "video_e_v1", "text2video"),
    *_both("GET", f"{_E_V1}/image2video/{{task_id}}", Shape.GET_VIDEO, "video_e_v1", "image2video"),
    *_both("POST", "/vidE/text-to-video/{model}", Shape.CREATE_VIDEO, "video_e_3", "text-to-video"),
    *_both("POST", "/vidE/image-to-video/{model}", Shape.CREATE_VIDEO, "video_e_3", "image-to-video"),
    *_both("POST", "/vidE/omni-video/{model}", Shape.CREATE_VIDEO, "video_e_3", "omni-video"),
    *_both("GET", "/vidE/tasks", Shape.GET_VIDEO, "video_e_3"),
    *_both("POST", "/vidE/callbacks/{task_id}/{signature}", Shape.RECEIVE_VIDEO_CALLBACK, "video_e_3"),
    *_both("POST", "/vidF", Shape.CREATE_VIDEO, "video_f"),
    *_both("POST", "/vidG/v2/video_generation", Shape.CREATE_VIDEO, "video_g"),
    *_both("GET", "/vidG/v2/query/video_generation/{task_id}", Shape.GET_VIDEO, "video_g"),
)

DEPLOYMENT_ROOT = "/openai/deployments/{deployment:.+}"
"""Prefix of Azure OpenAI's paths that name the model (openai 3.57.0, lib/azure.py); others differ by their base."""
DEPLOYMENT_ROUTES = tuple(
    Route("POST", f"{DEPLOYMENT_ROOT}{path}", shape, face)
    for path, shape, face in (
        ("/chat/completions", Shape.GENERATE, "chat"),
        *(
            (path.removeprefix("/v1"), Shape.UNARY, row.paths[path])
            for row in UNARY_OPERATIONS.values()
            for path in row.deployment_paths
        ),
        ("/images/generations", Shape.GENERATE_IMAGE, "images"),
        ("/images/edits", Shape.GENERATE_IMAGE, "image_edits"),
    )
)
"""Routes whose path names the model, which a member `model` of the body does not change."""
OLLAMA_ROUTES = (  # its embeddings are rows of their operation
    *_both("POST", "/api/chat", Shape.GENERATE, "ollama_chat"),
    *_both("POST", "/api/generate", Shape.GENERATE, "ollama_generate"),
    *_both("GET", "/api/tags", Shape.LIST_MODELS, "ollama_models"),
    *_both("POST", "/api/show", Shape.GET_MODEL, "ollama_models"),
    *_both("GET", "/api/ps", Shape.LIST_MODELS, "ollama_running"),
    Route("GET", "/api/version", Shape.GET_VERSION, "ollama_chat", needs_key=False),
)

METHOD_SERVICES = (
    *dict.fromkeys(row.service for row in OPERATION_ROWS),
    *("ModelService", *ADMINISTRATIVE_SERVICES),
)
"""Services of the schema whose methods are called with a key."""
SIGNED_SERVICES = ("FileService",)
"""Services whose requests have a signature instead."""
METHOD_ROUTES = (
    *(Route("POST", f"/umg.v1.{name}/{{rpc}}", Shape.CALL_METHOD, "connect") for name in METHOD_SERVICES),
    *(
        Route("POST", f"/umg.v1.{name}/{{rpc}}", Shape.CALL_METHOD, "connect", needs_key=False, is_signed=True)
        for name in SIGNED_SERVICES
    ),
)

ROUTE_TABLE = (
    Route("POST", "/v1/chat/completions", Shape.GENERATE, "chat"),
    Route("POST", "/v1/responses", Shape.GENERATE, "responses"),
    Route("POST", "/v1/responses/compact", Shape.COMPACT, "responses"),
    Route("POST", "/v1/responses/input_tokens", Shape.COUNT_TOKENS, "responses"),
    Route("GET", "/v1/responses/{response_id}", Shape.GET_RESPONSE, "responses"),
    Route("DELETE", "/v1/responses/{response_id}", Shape.DELETE_RESPONSE, "responses"),
    Route("POST", "/v1/responses/{response_id}/cancel", Shape.CANCEL_RESPONSE, "responses"),
    Route("GET", "/v1/responses/{response_id}/input_items", Shape.LIST_INPUT_ITEMS, "responses"),
    Route("POST", "/v1/messages", Shape.GENERATE, "messages"),
    Route("POST", "/v1/messages/count_tokens", Shape.COUNT_TOKENS, "messages", errors="count_tokens"),
    Route("POST", "/v2/chat", Shape.GENERATE, "cohere"),
    # the action follows the last colon: a model id may contain colons and slashes
    *(
        Route("POST", f"{root}/models/{{model:.+}}:{action}", shape, face, stream=stream)
        for root in NATIVE_ROOTS
        for action, shape, face, stream in NATIVE_ACTIONS
    ),
    *(Route("POST", path, Shape.UNARY, face) for row in UNARY_OPERATIONS.values() for path, face in row.paths.items()),
    *_both("POST", "/v1/images/generations", Shape.GENERATE_IMAGE, "images"),
    *_both("POST", "/v1/images/edits", Shape.GENERATE_IMAGE, "image_edits"),
    *_both("POST", "/v1/images/variations", Shape.GENERATE_IMAGE, "image_variations"),
    *VIDEO_ROUTES,
    *DEPLOYMENT_ROUTES,
    Route("GET", "/v1/models", Shape.LIST_MODELS, "models"),
    Route("GET", f"/v1/models/{MODEL_SEGMENT}", Shape.GET_MODEL, "models"),
    Route("GET", "/v1beta/models", Shape.LIST_MODELS, "native_models"),
    Route("GET", f"/v1beta/models/{MODEL_SEGMENT}", Shape.GET_MODEL, "native_models"),
    *OLLAMA_ROUTES,
    *(
        Route(method, f"/admin/v1/{path}", shape, "admin", errors=DEFAULT_FORMAT)
        for method, path, shape in (
            ("POST", "keys", Shape.CREATE_KEY),
            ("GET", "keys", Shape.LIST_KEYS),
            ("GET", "keys/{key_id}", Shape.GET_KEY),
            ("PATCH", "keys/{key_id}", Shape.UPDATE_KEY),
            ("POST", "keys/{key_id}/rotate", Shape.ROTATE_KEY),
            ("POST", "keys/{key_id}/revoke", Shape.REVOKE_KEY),
            ("GET", "keys/{key_id}/usage", Shape.GET_USAGE),
            ("GET", "usage", Shape.LIST_USAGE),
            ("GET", "usage/end-users", Shape.LIST_END_USER_USAGE),
            ("GET", "summary", Shape.GET_CALL_SUMMARY),
            ("GET", "requests", Shape.LIST_REQUESTS),
            ("GET", "requests/{request_id:.+}", Shape.GET_REQUEST),
            ("GET", "channels", Shape.LIST_CHANNELS),
            ("GET", "channel-details", Shape.LIST_CHANNEL_DETAILS),
            ("POST", "channels/{channel}/check", Shape.CHECK_CHANNEL),
            ("PATCH", "channels/{channel}", Shape.UPDATE_CHANNEL),
            ("GET", "models", Shape.LIST_MODEL_PRICES),
            ("PATCH", "models/{model:.+}", Shape.UPDATE_MODEL_PRICE),
            ("GET", "alerts", Shape.LIST_ALERTS),
            ("POST", "alert-receivers/{receiver}/test", Shape.TEST_ALERT_RECEIVER),
            ("POST", "organizations", Shape.CREATE_ORGANIZATION),
            ("GET", "organizations", Shape.LIST_ORGANIZATIONS),
            ("GET", "organizations/{account_id}", Shape.GET_ORGANIZATION),
            ("PATCH", "organizations/{account_id}", Shape.UPDATE_ORGANIZATION),
            ("POST", "organizations/{account_id}/close", Shape.CLOSE_ORGANIZATION),
            ("POST", "organizations/{account_id}/open", Shape.OPEN_ORGANIZATION),
            ("POST", "projects", Shape.CREATE_PROJECT),
            ("GET", "projects", Shape.LIST_PROJECTS),
            ("GET", "projects/{account_id}", Shape.GET_PROJECT),
            ("PATCH", "projects/{account_id}", Shape.UPDATE_PROJECT),
            ("POST", "projects/{account_id}/close", Shape.CLOSE_PROJECT),
            ("POST", "projects/{account_id}/open", Shape.OPEN_PROJECT),
            ("POST", "users", Shape.CREATE_USER),
            ("GET", "users", Shape.LIST_USERS),
            ("GET", "users/{user_id}", Shape.GET_USER),
            ("PATCH", "users/{user_id}", Shape.UPDATE_USER),
            ("GET", "me", Shape.GET_CALLER),
            ("GET", "sessions", Shape.LIST_SESSIONS),
            ("POST", "sessions/{session_id}/end", Shape.END_SESSION),
            ("GET", "audit", Shape.LIST_AUDIT_EVENTS),
            ("GET", "tasks", Shape.LIST_TASKS),
            ("GET", "tasks/{task_id}", Shape.GET_TASK),
            ("POST", "tasks/{task_id}/redeliver", Shape.REDELIVER_CALLBACK),
            ("GET", "config", Shape.GET_CONFIG),
        )
    ),
    *METHOD_ROUTES,
    Route("GET", "/files/{token}", Shape.GET_FILE, "files", needs_key=False, is_signed=True, errors=DEFAULT_FORMAT),
    Route("GET", "/", Shape.HOME, needs_key=False),  # Claude Code sends HEAD to this path first,
    Route("GET", "/api/hello", Shape.ALIVE, needs_key=False),  # its later versions to this one
    Route("GET", "/healthz", Shape.ALIVE, needs_key=False),
    Route("GET", "/readyz", Shape.READY, needs_key=False),
    Route("GET", "/metrics", Shape.METRICS, needs_key=False),
    Route("GET", "/playground", Shape.PLAYGROUND, needs_key=False),
    Route("GET", "/docs", Shape.DOCS, needs_key=False),
    Route("GET", "/assets/{name:.+}", Shape.ASSET, needs_key=False),
    Route("GET", "/openapi.json", Shape.OPENAPI, needs_key=False),
    Route("GET", "/auth/login", Shape.SIGN_IN_PAGE, needs_key=False),
    Route("POST", "/auth/login", Shape.SIGN_IN, needs_key=False),
    Route("GET", "/auth/callback", Shape.SIGN_IN_CALLBACK, needs_key=False),
    Route("POST", "/auth/logout", Shape.SIGN_OUT, needs_key=False),
    Route("GET", "/auth/me", Shape.GET_SESSION, needs_key=False),
    *(
        Route(method, path, shape, needs_key=False)
        for path in ("/console", "/console/{page:.*}")
        for method, shape in (("GET", Shape.CONSOLE_PAGE), ("POST", Shape.CONSOLE_FORM))
    ),
)

METRICS_ROUTES = tuple(row for row in ROUTE_TABLE if row.shape is Shape.METRICS)


def routes_without(shapes: Collection[Shape]) -> tuple[Route, ...]:
    """Return the table of routes without those of the given kinds of operations."""
    return tuple(row for row in ROUTE_TABLE if row.shape not in shapes)


MODEL_CALL_SHAPES = frozenset(
    {Shape.GENERATE, Shape.COMPACT, Shape.COUNT_TOKENS, Shape.UNARY, Shape.GENERATE_IMAGE, Shape.CREATE_VIDEO}
)
_MODEL_CALL_ROUTES = {row.path: row for row in ROUTE_TABLE if row.shape in MODEL_CALL_SHAPES}
_DEPLOYMENTS = DEPLOYMENT_ROOT.partition("{")[0]


def model_call_route(method: str, target: str) -> Route | None:
    """Return a model call's route by method and target; None for any other request and in an unusual spelling."""
    path = target.partition("?")[0]
    row = _MODEL_CALL_ROUTES.get(path)
    if row is None and path.startswith(_DEPLOYMENTS):
        row = next((row for row in DEPLOYMENT_ROUTES if path.endswith(row.path.removeprefix(DEPLOYMENT_ROOT))), None)
    elif row is None:
        root, models, named = path.partition("/models/")
        row = _MODEL_CALL_ROUTES.get(f"{root}{models}{{model:.+}}:{named.rpartition(':')[2]}")
    return row if method == "POST" else None
