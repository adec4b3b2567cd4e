"""Words of the operations, each with its rooms and the files outside of them that may name it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

EVERY_OPERATION = ("umg_grpc/operations", "umg_grpc/v1")
"""Rooms that all operations have: their rows, and the schema."""
CONFIG_FIELD = "a public field of the config"
ERROR_BODIES = "the table of the formats whose errors have a body of their own"
HELP = "the help of a command, which loads no schema"
LITELLM = "words of LiteLLM's files"
IMPORTED_CHANNEL = "the protocols of a converted channel"
MODEL_IDS = "ids of models"
MODEL_FIELD = "a field of the schema's models, which the config sets"
OPENAPI_COMPONENT = "a public name of a schema in the OpenAPI document"
OTEL = "an attribute that OpenTelemetry has for this operation alone"
PATHS = "the table of paths"
REQUEST_MEMBER = "a member that only its requests have"
VENDOR_LIST = "words of a vendor's model list"
OWN_PARTS = "the table of the operations that have parts of their own"


@dataclass(frozen=True)
class OperationWord:
    """Word that stands for an operation and for nothing else, with the files that may have it."""

    operation: str
    word: re.Pattern[str]
    rooms: tuple[str, ...]
    """Packages and modules of the operation, beside `EVERY_OPERATION`."""
    exceptions: Mapping[str, str]
    """Other file -> reason for which it names the operation."""

    def is_room(self, path: str) -> bool:
        """Return whether the file is in a room of the operation."""
        return any(path == room or path.startswith(f"{room}/") for room in (*EVERY_OPERATION, *self.rooms))


OPERATION_WORDS = (
    OperationWord(
        operation="reranking",
        word=re.compile("rerank", re.IGNORECASE),
        rooms=(
            "umg_grpc/wire/rerank",
            "umg_grpc/service/operations/unary/rerank_pipeline.py",
            "umg_grpc/upstream/local",
            "umg_sandbox/rerank_channel.py",
        ),
        exceptions={
            "umg_grpc/cli/key_commands.py": HELP,
            "umg_grpc/config/built_in_config.py": MODEL_IDS,
            "umg_grpc/config/file_sections.py": CONFIG_FIELD,
            "umg_grpc/config/importers/from_litellm.py": LITELLM,
            "umg_grpc/knowledge/catalogue.py": MODEL_IDS,
            "umg_grpc/knowledge/public_prices/cost_map.py": LITELLM,
            "umg_grpc/knowledge/shipped_prices.py": MODEL_IDS,
            "umg_grpc/service/operations/unary/__init__.py": OWN_PARTS,
            "umg_grpc/wire/openapi_schemas/error_body_types.py": OPENAPI_COMPONENT,
            "umg_sandbox/unary_channel.py": OWN_PARTS,
        },
    ),
    OperationWord(
        operation="embedding",
        word=re.compile("embed(?!ded)", re.IGNORECASE),
        rooms=(
            "umg_grpc/wire/embedding_formats.py",
            "umg_grpc/wire/embeddings",
            "umg_grpc/wire/native_embeddings",
            "umg_grpc/wire/shared_embedding_checks.py",
            "umg_grpc/service/operations/unary/embedding_pipeline.py",
            "umg_grpc/tokens/decoding.py",
            "umg_grpc/upstream/http/embedding_batches.py",
            "umg_grpc/upstream/local",
            "umg_sandbox/embedding_channel.py",
        ),
        exceptions={
            "http_facade/routes.py": PATHS,
            "umg_grpc/cli/key_commands.py": HELP,
            "umg_grpc/config/built_in_config.py": MODEL_IDS,
            "umg_grpc/config/file_sections.py": CONFIG_FIELD,
            "umg_grpc/config/importers/from_litellm.py": LITELLM,
            "umg_grpc/config/importers/from_new_api.py": IMPORTED_CHANNEL,
            "umg_grpc/config/model_settings.py": MODEL_FIELD,
            "umg_grpc/knowledge/catalogue.py": MODEL_IDS,
            "umg_grpc/knowledge/public_prices/cost_map.py": LITELLM,
            "umg_grpc/knowledge/shipped_prices.py": MODEL_IDS,
            "umg_grpc/service/operations/unary/__init__.py": OWN_PARTS,
            "umg_grpc/service/telemetry/span_attributes.py": OTEL,
            "umg_grpc/upstream/http/unary_upstreams.py": OWN_PARTS,
            "umg_grpc/wire/model_lists/native.py": VENDOR_LIST,
            "umg_grpc/wire/openapi_schemas/error_body_types.py": ERROR_BODIES,
            "umg_grpc/wire/openapi_schemas/retrieval_response_types.py": OPENAPI_COMPONENT,
            "umg_grpc/wire/vendor_members.py": REQUEST_MEMBER,
            "umg_sandbox/unary_channel.py": OWN_PARTS,
        },
    ),
)
"""Text generation is the default operation of a call and of a model, and has no word."""
