"""Table with the texts of each kind of operation in the OpenAPI document: tag and summary, and its error statuses.
`parameters`, `bodies_and_responses` and `error_responses` generate the other parts of an operation from the types of
the bodies, and `openapi_document` puts the parts together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from http_facade.handlers.admin_rpc_table import ADMIN_METHODS
from http_facade.routes import Route, Shape
from umg_grpc.operations.wire_formats_by_name import unary_operation

KEY_STATUSES = (400, 401, 403, 429, 500, 503, 504)
BODY_STATUSES = (*KEY_STATUSES, 413, 415)
MODEL_STATUSES = (*BODY_STATUSES, 402, 404, 409, 422, 424, 451, 501, 502)
TASK_STATUSES = (*KEY_STATUSES, 404, 502)


@dataclass(frozen=True)
class OperationDescription:
    """Row of the table: the tag, summary, described RPC and error statuses of one kind of operation."""

    tag: str
    summary: str
    method: str = ""
    """Method of the schema whose comment describes the operation; "" if there is none."""
    errors: tuple[int, ...] = KEY_STATUSES
    description: str = ""
    """Description of an operation without a method."""


_ADMIN_SUMMARIES = {
    Shape.CREATE_KEY: "Create a key",
    Shape.LIST_KEYS: "List the keys",
    Shape.GET_KEY: "Get a key; the id `self` is the calling key",
    Shape.UPDATE_KEY: "Change settings of a key",
    Shape.ROTATE_KEY: "Replace the secret of a key",
    Shape.REVOKE_KEY: "Revoke a key",
    Shape.GET_USAGE: "Get the usage of a key",
    Shape.LIST_USAGE: "List usage, grouped",
    Shape.LIST_END_USER_USAGE: "List usage by end user",
    Shape.GET_CALL_SUMMARY: "Summarise calls: figures, durations, groups and failures",
    Shape.LIST_REQUESTS: "List the records of requests",
    Shape.GET_REQUEST: "Get the record of a request",
    Shape.LIST_CHANNELS: "List the channels and their states",
    Shape.LIST_CHANNEL_DETAILS: "List the channels with their settings, failures and knowledge",
    Shape.CHECK_CHANNEL: "Call a channel once, to check it",
    Shape.UPDATE_CHANNEL: "Disable or enable a channel, or change its weight",
    Shape.LIST_MODEL_PRICES: "List the models of the gateway with their prices, unpriced ones first",
    Shape.UPDATE_MODEL_PRICE: "Set the prices of a model, or take them back",
    Shape.LIST_ALERTS: "List the alerts, open and past",
    Shape.TEST_ALERT_RECEIVER: "Send a test to a receiver of alerts",
    Shape.CREATE_ORGANIZATION: "Create an organisation",
    Shape.LIST_ORGANIZATIONS: "List the organisations",
    Shape.GET_ORGANIZATION: "Get an organisation",
    Shape.UPDATE_ORGANIZATION: "Change settings of an organisation",
    Shape.CLOSE_ORGANIZATION: "Close an organisation, which ends the calls of its keys",
    Shape.OPEN_ORGANIZATION: "Open a closed organisation again",
    Shape.CREATE_PROJECT: "Create a project",
    Shape.LIST_PROJECTS: "List the projects",
    Shape.GET_PROJECT: "Get a project",
    Shape.UPDATE_PROJECT: "Change settings of a project",
    Shape.CLOSE_PROJECT: "Close a project, which ends the calls of its keys",
    Shape.OPEN_PROJECT: "Open a closed project again",
    Shape.CREATE_USER: "Create a person or a service account",
    Shape.LIST_USERS: "List people and service accounts",
    Shape.GET_CALLER: "Return the caller with its roles and permissions",
    Shape.GET_USER: "Get a person or a service account",
    Shape.UPDATE_USER: "Change the name, the address or the roles of a user",
    Shape.LIST_SESSIONS: "List the own sessions, or those of a user",
    Shape.END_SESSION: "End a session",
    Shape.LIST_AUDIT_EVENTS: "List the audit log",
    Shape.LIST_TASKS: "List the video tasks of all keys",
    Shape.GET_TASK: "Get a video task with its notifications",
    Shape.GET_CONFIG: "Get the config in force, with the source of each value",
    Shape.REDELIVER_CALLBACK: "Deliver the notifications of a video task again",
}
DESCRIBED_OPERATIONS: Mapping[Shape, OperationDescription] = MappingProxyType(
    {
        Shape.GENERATE: OperationDescription(
            "Text", "Generate a response", "GenerationService.Generate", MODEL_STATUSES
        ),
        Shape.COMPACT: OperationDescription(
            "Text", "Compact a conversation", "GenerationService.Generate", MODEL_STATUSES
        ),
        Shape.COUNT_TOKENS: OperationDescription(
            "Text", "Count the tokens of a prompt", "GenerationService.CountTokens", MODEL_STATUSES
        ),
        Shape.GET_RESPONSE: OperationDescription(
            "Text", "Get a stored response", "GenerationService.GetStoredResponse", TASK_STATUSES
        ),
        Shape.DELETE_RESPONSE: OperationDescription(
            "Text", "Delete a stored response", "GenerationService.DeleteStoredResponse", TASK_STATUSES
        ),
        Shape.CANCEL_RESPONSE: OperationDescription(
            "Text", "Cancel a stored response", "GenerationService.CancelStoredResponse", TASK_STATUSES
        ),
        Shape.LIST_INPUT_ITEMS: OperationDescription(
            "Text", "List the input of a stored response", "GenerationService.ListInputItems", TASK_STATUSES
        ),
        Shape.GENERATE_IMAGE: OperationDescription(
            "Images", "Make images", "ImageService.GenerateImage", MODEL_STATUSES
        ),
        Shape.CREATE_VIDEO: OperationDescription(
            "Videos", "Submit a video task", "VideoService.CreateVideoTask", MODEL_STATUSES
        ),
        Shape.GET_VIDEO: OperationDescription("Videos", "Get a video task", "VideoService.GetVideoTask", TASK_STATUSES),
        Shape.LIST_VIDEOS: OperationDescription("Videos", "List video tasks", "VideoService.ListVideoTasks"),
        Shape.DELETE_VIDEO: OperationDescription(
            "Videos", "Remove a video task", "VideoService.DeleteVideoTask", (*TASK_STATUSES, 501)
        ),
        Shape.REMIX_VIDEO: OperationDescription(
            "Videos", "Change a finished video", "VideoService.RemixVideoTask", MODEL_STATUSES
        ),
        Shape.GET_VIDEO_CONTENT: OperationDescription(
            "Videos", "Download a result", "VideoService.DownloadVideo", (*TASK_STATUSES, 416, 501)
        ),
        Shape.RECEIVE_VIDEO_CALLBACK: OperationDescription(
            "Videos",
            "Receive a provider's notification",
            "VideoService.ReceiveVideoCallback",
            (400, 401, 403, 404, 413, 500, 503),
        ),
        Shape.LIST_MODELS: OperationDescription("Models", "List the models of the key", "ModelService.ListModels"),
        Shape.GET_MODEL: OperationDescription("Models", "Get a model", "ModelService.GetModel", (*KEY_STATUSES, 404)),
        Shape.GET_VERSION: OperationDescription(
            "Models",
            "Get the version of the API",
            errors=(),
            description="Returns the version of Ollama's API whose paths are served. Needs no key.",
        ),
        **{
            shape: OperationDescription(
                "Administration",
                _ADMIN_SUMMARIES[shape],
                f"{method.service}.{method.name}",
                (*(KEY_STATUSES if method.decode is None else BODY_STATUSES), 404),
            )
            for shape, method in ADMIN_METHODS.items()
        },
        Shape.CALL_METHOD: OperationDescription(
            "Methods of the schema", "Call a method of the schema", errors=(*MODEL_STATUSES, 499)
        ),
        Shape.GET_FILE: OperationDescription(
            "Videos", "Download a result by its signed link", "FileService.GetFile", (400, 401, 403, 404, 416, 500, 503)
        ),
        Shape.ALIVE: OperationDescription(
            "Health",
            "Check whether the process answers",
            errors=(),
            description="Succeeds as long as the process answers, also while it starts or drains. Needs no key.",
        ),
        Shape.HOME: OperationDescription(
            "Health",
            "Check whether the process answers; leads browsers to the playground",
            errors=(),
            description="Returns the state of the process, or leads a browser to the playground. Needs no key.",
        ),
        Shape.READY: OperationDescription(
            "Health",
            "Check whether calls are served",
            errors=(),
            description="Fails with 503 and its reasons while the gateway starts or drains. Needs no key.",
        ),
        Shape.PLAYGROUND: OperationDescription("Pages", "Get the playground, a page for browsers", errors=()),
        Shape.DOCS: OperationDescription("Pages", "Get the API reference, a page for browsers", errors=()),
        Shape.ASSET: OperationDescription("Pages", "Get a part of the pages", errors=(404,)),
        Shape.OPENAPI: OperationDescription("Pages", "Get the OpenAPI document", errors=()),
        Shape.SIGN_IN_PAGE: OperationDescription("Pages", "Get the page to sign in, or go to an issuer", errors=()),
        Shape.SIGN_IN: OperationDescription("Pages", "Sign in by a key or the code of a link", errors=(401, 403, 429)),
        Shape.SIGN_IN_CALLBACK: OperationDescription("Pages", "Return from an issuer", errors=(400, 401, 403, 429)),
        Shape.SIGN_OUT: OperationDescription("Pages", "Sign out", errors=(403,)),
        Shape.GET_SESSION: OperationDescription("Pages", "Get the person of the session", errors=(401, 403)),
        Shape.CONSOLE_PAGE: OperationDescription("Pages", "Get a page of the console", errors=(400, 403, 404)),
        Shape.CONSOLE_FORM: OperationDescription("Pages", "Send a form of the console", errors=(400, 403, 404, 409)),
        Shape.METRICS: OperationDescription(
            "Health",
            "Get the metrics for Prometheus",
            errors=(401,),
            description="Returns all metrics as text. Needs `metrics.key` if the config has it.",
        ),
    }
)


def operation_of(route: Route) -> OperationDescription:
    """Return the row of a route."""
    if route.shape is not Shape.UNARY:
        return DESCRIBED_OPERATIONS[route.shape]
    row = unary_operation(route.format)
    return OperationDescription(row.tag, row.summary, f"{row.service}.{row.methods[0]}", MODEL_STATUSES)
