"""Authorisation of every route and every method of the schema, for every kind of key.

The rows come from the table of routes and the service descriptors; a row without an entry in the tables below fails.
"""

import re
from collections.abc import AsyncGenerator, Mapping
from datetime import UTC, datetime, timedelta

import aiohttp
import grpc
import pytest
import pytest_asyncio
from google.protobuf.descriptor import MethodDescriptor

from http_facade.routes import ROUTE_TABLE, Route, Shape
from tests.support.gateways import Running, revoke, running
from tests.unit.e2e.authorisation import (
    BODIES,
    CONFIG,
    KEYED_ROUTES,
    METHODS,
    SETTINGS_BODIES,
    TEXT,
    Gate,
    call,
    call_over_http,
    path_of,
    payload,
    request_of,
)
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.key_permissions import ADMIN_SCOPE, PERMITTED_OPERATIONS
from umg_grpc.operations.embedding_operation import EMBED_OPERATION
from umg_grpc.operations.moderation_operation import MODERATE_OPERATION
from umg_grpc.operations.rerank_operation import RERANK_OPERATION
from umg_grpc.operations.speech_operation import SPEAK_OPERATION
from umg_grpc.operations.transcription_operation import TRANSCRIBE_OPERATION
from umg_grpc.operations.wire_formats_by_name import unary_operation

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHAPES: Mapping[Shape, str] = {
    Shape.GENERATE: "generate",
    Shape.COMPACT: "generate",
    Shape.COUNT_TOKENS: "generate",
    Shape.GET_RESPONSE: "generate",
    Shape.DELETE_RESPONSE: "generate",
    Shape.CANCEL_RESPONSE: "generate",
    Shape.LIST_INPUT_ITEMS: "generate",
    Shape.GENERATE_IMAGE: "images",
    Shape.CREATE_VIDEO: "videos",
    Shape.GET_VIDEO: "videos",
    Shape.LIST_VIDEOS: "videos",
    Shape.DELETE_VIDEO: "videos",
    Shape.REMIX_VIDEO: "videos",
    Shape.GET_VIDEO_CONTENT: "videos",
    Shape.LIST_MODELS: "models",
    Shape.GET_MODEL: "models",
    Shape.CREATE_KEY: ADMIN_SCOPE,
    Shape.LIST_KEYS: ADMIN_SCOPE,
    Shape.GET_KEY: ADMIN_SCOPE,
    Shape.UPDATE_KEY: ADMIN_SCOPE,
    Shape.ROTATE_KEY: ADMIN_SCOPE,
    Shape.REVOKE_KEY: ADMIN_SCOPE,
    Shape.GET_USAGE: ADMIN_SCOPE,
    Shape.LIST_USAGE: ADMIN_SCOPE,
    Shape.LIST_END_USER_USAGE: ADMIN_SCOPE,
    Shape.LIST_REQUESTS: ADMIN_SCOPE,
    Shape.GET_REQUEST: ADMIN_SCOPE,
    Shape.LIST_CHANNELS: ADMIN_SCOPE,
    Shape.LIST_CHANNEL_DETAILS: ADMIN_SCOPE,
    Shape.CHECK_CHANNEL: ADMIN_SCOPE,
    Shape.UPDATE_CHANNEL: ADMIN_SCOPE,
    Shape.LIST_ALERTS: ADMIN_SCOPE,
    Shape.TEST_ALERT_RECEIVER: ADMIN_SCOPE,
    **{
        Shape[f"{verb}_{kind}"]: ADMIN_SCOPE
        for kind in ("ORGANIZATION", "PROJECT")
        for verb in ("CREATE", "GET", "UPDATE", "CLOSE", "OPEN")
    },
    Shape.LIST_ORGANIZATIONS: ADMIN_SCOPE,
    Shape.LIST_PROJECTS: ADMIN_SCOPE,
    Shape.CREATE_USER: ADMIN_SCOPE,
    Shape.LIST_USERS: ADMIN_SCOPE,
    Shape.GET_CALLER: ADMIN_SCOPE,
    Shape.GET_USER: ADMIN_SCOPE,
    Shape.UPDATE_USER: ADMIN_SCOPE,
    Shape.LIST_AUDIT_EVENTS: ADMIN_SCOPE,
    Shape.LIST_TASKS: ADMIN_SCOPE,
    Shape.GET_TASK: ADMIN_SCOPE,
    Shape.REDELIVER_CALLBACK: ADMIN_SCOPE,
}
"""Scope that a key needs for the routes of a shape."""
UNARY_SCOPES = {
    EMBED_OPERATION: "embed",
    RERANK_OPERATION: "rerank",
    MODERATE_OPERATION: "moderate",
    SPEAK_OPERATION: "speech",
    TRANSCRIBE_OPERATION: "transcribe",
}
"""Scope that a key needs for the routes of an operation of `Shape.UNARY`."""
MODEL_SHAPES = {
    *(Shape.GENERATE, Shape.COMPACT, Shape.COUNT_TOKENS, Shape.UNARY, Shape.GENERATE_IMAGE, Shape.CREATE_VIDEO),
    Shape.GET_MODEL,
}

SERVICES = {
    "umg.v1.GenerationService": {"generate"},
    "umg.v1.EmbeddingService": {"embed"},
    "umg.v1.ModerationService": {"moderate"},
    "umg.v1.SpeechService": {"speech"},
    "umg.v1.TranscriptionService": {"transcribe"},
    "umg.v1.RerankService": {"rerank"},
    "umg.v1.ModelService": {"models"},
    "umg.v1.ImageService": {"images"},
    "umg.v1.VideoService": {"videos"},
    "umg.v1.AdminService": {ADMIN_SCOPE},
    "umg.v1.AlertService": {ADMIN_SCOPE},
    "umg.v1.ChannelService": {ADMIN_SCOPE},
    "umg.v1.AccountService": {ADMIN_SCOPE},
    "umg.v1.UserService": {ADMIN_SCOPE},
    "umg.v1.AuditService": {ADMIN_SCOPE},
    "umg.v1.TaskService": {ADMIN_SCOPE},
}
"""Scopes of which a key needs one for the methods of a service."""
