"""Operations of models: one row each, which routing, permissions, prices, config, telemetry, usage records and the
channel checks read. A new operation is a module with its row, and a line in `ROWS`.
"""

from collections.abc import Mapping
from types import MappingProxyType

from google.protobuf.message import Message

from umg_grpc.operations.embed import EMBEDDING
from umg_grpc.operations.generate import GENERATION, TOKEN_COUNTING
from umg_grpc.operations.image import IMAGE_EDITING, IMAGE_GENERATION
from umg_grpc.operations.moderate import MODERATION
from umg_grpc.operations.operation_row import (
    AttemptTelemetry,
    ModelOperation,
    Operation,
    StreamedMethod,
    UnaryOperation,
)
from umg_grpc.operations.rerank import RERANKING
from umg_grpc.operations.speak import SPEECH
from umg_grpc.operations.transcribe import TRANSCRIPTION
from umg_grpc.operations.video import VIDEO_CREATION, VIDEO_REMIX

__all__ = [
    "CALLED",
    "OPERATIONS",
    "ROWS",
    "SCOPES",
    "UNARY",
    "UNARY_BY_REQUEST",
    "AttemptTelemetry",
    "ModelOperation",
    "Operation",
    "StreamedMethod",
    "UnaryOperation",
]

ROWS: tuple[Operation[Message, Message], ...] = (
    *(GENERATION, TOKEN_COUNTING, EMBEDDING, RERANKING, MODERATION, SPEECH, TRANSCRIPTION),
    *(IMAGE_GENERATION, IMAGE_EDITING, VIDEO_CREATION, VIDEO_REMIX),
)
OPERATIONS: Mapping[ModelOperation, Operation[Message, Message]] = MappingProxyType({row.value: row for row in ROWS})
"""Value of the schema -> row of the operation, in the order in which protocols and permissions are listed."""
UNARY: Mapping[ModelOperation, UnaryOperation[Message, Message]] = MappingProxyType(
    {row.value: row for row in ROWS if isinstance(row, UnaryOperation)}
)
UNARY_BY_REQUEST: Mapping[type[Message], UnaryOperation[Message, Message]] = MappingProxyType(
    {row.request: row for row in UNARY.values()}
)
CALLED: Mapping[str, Operation[Message, Message]] = MappingProxyType(
    {f"/{row.full_service}/{method}": row for row in ROWS for method in row.methods}
)
"""Path of a method that calls a channel -> row of its operation."""
SCOPES: Mapping[str, tuple[ModelOperation, ...]] = MappingProxyType(
    {scope: tuple(row.value for row in ROWS if row.scope == scope) for scope in dict.fromkeys(r.scope for r in ROWS)}
)
"""Permission of keys, and name in the config -> operations of models that it stands for."""
