"""Operations of models, with one row each. Routing, permissions, prices, config, telemetry, usage records and channel
checks read the rows. A new operation is a module with its row, and a line in `OPERATION_ROWS`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from google.protobuf.message import Message

from umg_grpc.operations.embedding_operation import EMBED_OPERATION
from umg_grpc.operations.generation_operation import GENERATE_OPERATION, TOKEN_COUNTING
from umg_grpc.operations.image_operation import IMAGE_EDITING, IMAGE_GENERATION
from umg_grpc.operations.moderation_operation import MODERATE_OPERATION
from umg_grpc.operations.operation_row import (
    AttemptTelemetry,
    ModelOperation,
    Operation,
    StreamedMethod,
    UnaryOperation,
)
from umg_grpc.operations.rerank_operation import RERANK_OPERATION
from umg_grpc.operations.speech_operation import SPEAK_OPERATION
from umg_grpc.operations.transcription_operation import TRANSCRIBE_OPERATION
from umg_grpc.operations.video_operation import VIDEO_CREATION, VIDEO_REMIX

__all__ = [
    "ADMINISTRATIVE_SERVICES",
    "CALLED_OPERATIONS",
    "OPERATIONS_BY_VALUE",
    "OPERATION_ROWS",
    "SCOPE_OPERATIONS",
    "UNARY_BY_REQUEST",
    "UNARY_OPERATIONS",
    "AttemptTelemetry",
    "ModelOperation",
    "Operation",
    "StreamedMethod",
    "UnaryOperation",
]

ADMINISTRATIVE_SERVICES = (
    *("AdminService", "AlertService", "ChannelService", "AccountService", "UserService", "AuditService"),
    *("TaskService", "ConfigService", "ModelPriceService"),
)
"""Services of `umg.v1` whose methods state a permission of roles, which is checked with the caller's rights."""

OPERATION_ROWS: tuple[Operation[Message, Message], ...] = (
    *(GENERATE_OPERATION, TOKEN_COUNTING, EMBED_OPERATION, RERANK_OPERATION, MODERATE_OPERATION, SPEAK_OPERATION),
    *(TRANSCRIBE_OPERATION, IMAGE_GENERATION, IMAGE_EDITING, VIDEO_CREATION, VIDEO_REMIX),
)
OPERATIONS_BY_VALUE: Mapping[ModelOperation, Operation[Message, Message]] = MappingProxyType(
    {row.value: row for row in OPERATION_ROWS}
)
"""Value of the schema -> row of the operation, in the order in which protocols and permissions are listed."""
UNARY_OPERATIONS: Mapping[ModelOperation, UnaryOperation[Message, Message]] = MappingProxyType(
    {row.value: row for row in OPERATION_ROWS if isinstance(row, UnaryOperation)}
)
UNARY_BY_REQUEST: Mapping[type[Message], UnaryOperation[Message, Message]] = MappingProxyType(
    {row.request: row for row in UNARY_OPERATIONS.values()}
)
CALLED_OPERATIONS: Mapping[str, Operation[Message, Message]] = MappingProxyType(
    {f"/{row.full_service}/{method}": row for row in OPERATION_ROWS for method in row.methods}
)
"""Path of a method that calls a channel -> row of its operation."""
SCOPE_OPERATIONS: Mapping[str, tuple[ModelOperation, ...]] = MappingProxyType(
    {
        scope: tuple(row.value for row in OPERATION_ROWS if row.scope == scope)
        for scope in dict.fromkeys(r.scope for r in OPERATION_ROWS)
    }
)
"""Scope (permission of keys, and name in the config) -> operations of models that the scope includes."""
