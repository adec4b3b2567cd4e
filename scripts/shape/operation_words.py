"""Words of the operations, each with its rooms and the files outside of them that may name it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

EVERY_OPERATION = ("umg_grpc/operations", "umg_grpc/v1")
"""Rooms that all operations have: their rows, and the schema."""
CALL_SHAPES = "the tables of call shapes of the HTTP face"
CHANNEL_RULE = "a channel has one of its protocols at most"
CONFIG_FIELD = "a public field of the config"
EDITED_IMAGES = "a call to make images reaches models that only edit them, for a better error"
ERROR_BODIES = "the table of the formats whose errors have a body or a status of their own"
FACTORY = "the factory that builds its parts"
HELP = "the help of a command, which loads no schema"
INTERFACE = "the interface of its upstreams"
KIND_HEADING = "the heading of a kind of providers"
LITELLM = "words of LiteLLM's files"
MODEL_FIELD = "a field of the schema's models, which the config sets"
MODEL_IDS = "ids of models, with their operations"
OPENAPI_COMPONENT = "a public name of a schema in the OpenAPI document"
OTEL = "an attribute that OpenTelemetry has for this operation alone"
OWN_PARTS = "the table of the operations that have parts of their own"
PATHS = "the table of paths"
QUANTITIES = "its quantities, which are measured in a way of their own"
REQUEST_MEMBER = "a member that only its requests have"
SEEDED = "its rule for the cache, which asks for a seed"
SIGNED_METHOD = "a method that is called with a signature in place of a key"
VENDOR_LIST = "words of a vendor's model list"

SHAPE_TABLES = (
    "http_facade/handlers/route_handlers.py",
    "http_facade/openapi/bodies_and_responses.py",
    "http_facade/openapi/operation_texts.py",
    "http_facade/routes.py",
)


@dataclass(frozen=True)
class OperationWord:
    """Word that stands for an operation and for nothing else, with the files that may have it. Images, videos and
    tokens are parts of prompts, too: their words are those of calls.
    """

    operation: str
    word: re.Pattern[str]
    rooms: tuple[str, ...]
    """Packages and modules of the operation, beside `EVERY_OPERATION`."""
    exceptions: Mapping[str, str]
    """Other module or package -> reason for which it names the operation."""

    def is_room(self, path: str) -> bool:
        """Return whether the file is in a room of the operation."""
        return any(is_in(path, room) for room in (*EVERY_OPERATION, *self.rooms))

    def is_exception(self, path: str) -> bool:
        """Return whether the file may name the operation outside of its rooms."""
        return any(is_in(path, place) for place in self.exceptions)


def is_in(path: str, room: str) -> bool:
    """Return whether a file is the room, a module, or in it, a package."""
    return path == room or path.startswith(f"{room}/")


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
            "umg_grpc/config/built_in_config.py": MODEL_IDS,
            "umg_grpc/config/file_sections.py": CONFIG_FIELD,
            "umg_grpc/config/importers/litellm": LITELLM,
            "umg_grpc/knowledge/model_catalogue.py": MODEL_IDS,
            "umg_grpc/knowledge/public_prices/litellm_cost_map.py": LITELLM,
            "umg_grpc/knowledge/shipped_prices.py": MODEL_IDS,
            "umg_grpc/service/operations/unary/__init__.py": OWN_PARTS,
            "umg_grpc/wire/model_lists/cohere.py": VENDOR_LIST,
            "umg_sandbox/unary_channel.py": OWN_PARTS,
        },
    ),
    OperationWord(
        operation="embedding",
        word=re.compile("embed(?!ded)", re.IGNORECASE),
        rooms=(
            "umg_grpc/wire/bedrock_embeddings.py",
            "umg_grpc/wire/embedding_formats.py",
            "umg_grpc/wire/embeddings",
            "umg_grpc/wire/cohere_embeddings",
            "umg_grpc/wire/native_embeddings",
            "umg_grpc/wire/ollama_embeddings",
            "umg_grpc/wire/shared_embedding_checks.py",
            "umg_grpc/wire/vertex_embeddings.py",
            "umg_grpc/service/operations/unary/embedding_pipeline.py",
            "umg_grpc/tokens/token_decoding.py",
            "umg_grpc/upstream/http/embedding_batches.py",
            "umg_grpc/upstream/local",
            "umg_sandbox/embedding_channel.py",
        ),
        exceptions={
            "http_facade/routes.py": PATHS,
            "http_facade/exchange/unknown_paths.py": PATHS,
            "umg_grpc/cli/key_commands.py": HELP,
            "umg_grpc/cli/provider_texts.py": KIND_HEADING,
            "umg_grpc/config/built_in_config.py": MODEL_IDS,
            "umg_grpc/config/file_sections.py": CONFIG_FIELD,
            "umg_grpc/config/importers/litellm": LITELLM,
            "umg_grpc/config/importers/unserved_models.py": LITELLM,
            "umg_grpc/config/model_settings.py": MODEL_FIELD,
            "umg_grpc/knowledge/model_catalogue.py": MODEL_IDS,
            "umg_grpc/knowledge/public_prices/litellm_cost_map.py": LITELLM,
            "umg_grpc/knowledge/shipped_prices.py": MODEL_IDS,
            "umg_grpc/service/operations/unary/__init__.py": OWN_PARTS,
            "umg_grpc/service/telemetry/span_attributes.py": OTEL,
            "umg_grpc/upstream/http/unary_upstreams.py": OWN_PARTS,
            "umg_grpc/wire/model_lists": VENDOR_LIST,
            "umg_grpc/wire/openapi_schemas/retrieval_response_types.py": OPENAPI_COMPONENT,
            "umg_grpc/wire/vendor_dialect_adjustment.py": REQUEST_MEMBER,
            "umg_sandbox/unary_channel.py": OWN_PARTS,
        },
    ),
    OperationWord(
        operation="token counting",
        word=re.compile("count_?tokens|token_?counting", re.IGNORECASE),
        rooms=("umg_grpc/service/operations/generate", "umg_grpc/service/servicers/generation.py"),
        exceptions={
            **dict.fromkeys(SHAPE_TABLES, CALL_SHAPES),
            "http_facade/exchange/error_responses.py": ERROR_BODIES,
            "umg_grpc/knowledge/model_catalogue.py": MODEL_IDS,
            "umg_grpc/process/operation_factory.py": FACTORY,
            "umg_grpc/wire/errors/http_status.py": ERROR_BODIES,
            "umg_grpc/wire/model_lists/native.py": VENDOR_LIST,
        },
    ),
    OperationWord(
        operation="images",
        word=re.compile(
            "(?i:(?:generate|edit|make)_?image)|IMAGE_(?:GENERATION|EDITING)|Image(?:Generation|Editing|Service|Pipeline)"
        ),
        rooms=(
            "http_facade/handlers/image_handler.py",
            "umg_grpc/cli/image_command_client.py",
            "umg_grpc/cli/image_commands.py",
            "umg_grpc/knowledge/families/image_model_rules.py",
            "umg_grpc/service/operations/image",
            "umg_grpc/service/pipeline/image_call_costs.py",
            "umg_grpc/service/servicers/images.py",
            "umg_grpc/upstream/http/image_generation.py",
            "umg_grpc/upstream/http/image_request_sender.py",
            "umg_grpc/upstream/http/image_task_polling.py",
            "umg_grpc/upstream/http/image_url_inlining.py",
            "umg_grpc/wire/core/undecoded_base64_files.py",
            "umg_grpc/wire/image_format_interface.py",
            "umg_grpc/wire/images",
            "umg_sandbox/image_channel.py",
            "umg_sandbox/image_usage.py",
        ),
        exceptions={
            **dict.fromkeys(SHAPE_TABLES, CALL_SHAPES),
            "umg_grpc/config/channel_section.py": CHANNEL_RULE,
            "umg_grpc/knowledge/model_catalogue.py": MODEL_IDS,
            "umg_grpc/process/operation_factory.py": FACTORY,
            "umg_grpc/routing/channel_target.py": EDITED_IMAGES,
            "umg_grpc/service/caching/response_cache_key.py": SEEDED,
            "umg_grpc/service/caching/response_cache_lookup.py": SEEDED,
            "umg_grpc/service/pipeline/maximum_call_cost.py": QUANTITIES,
            "umg_grpc/service/pipeline/rate_limit_token_estimates.py": QUANTITIES,
            "umg_grpc/service/pipeline/usage_recording.py": QUANTITIES,
            "umg_grpc/upstream/upstream_interfaces.py": INTERFACE,
        },
    ),
    OperationWord(
        operation="videos",
        word=re.compile("(?:create|make|remix)_?video|video_?(?:creation|pipeline|remix|service|task)", re.IGNORECASE),
        rooms=(
            "http_facade/console/pages/task_pages.py",
            "http_facade/handlers/video_download_handler.py",
            "http_facade/handlers/video_handlers.py",
            "umg_grpc/cli/task_record_commands.py",
            "umg_grpc/cli/task_record_tables.py",
            "umg_grpc/cli/video_command_client.py",
            "umg_grpc/knowledge/families/video_model_rules.py",
            "umg_grpc/service/operations/video",
            "umg_grpc/service/servicers/task_administration.py",
            "umg_grpc/service/servicers/task_record_messages.py",
            "umg_grpc/service/servicers/validated_tasks.py",
            "umg_grpc/service/servicers/videos.py",
            "umg_grpc/service/video_tasks",
            "umg_grpc/store/video_task_polls.py",
            "umg_grpc/store/video_task_queries.py",
            "umg_grpc/store/video_task_table.py",
            "umg_grpc/upstream/http/video_url_inlining.py",
            "umg_grpc/wire/video",
            "umg_sandbox/video_channel.py",
            "umg_sandbox/video_drawing.py",
            "umg_sandbox/video_encoding.py",
        ),
        exceptions={
            **dict.fromkeys(SHAPE_TABLES, CALL_SHAPES),
            "http_facade/openapi/parameters.py": CALL_SHAPES,
            "umg_grpc/access/key_permissions.py": SIGNED_METHOD,
            "umg_grpc/cli/database_admin_client.py": FACTORY,
            "umg_grpc/config/channel_section.py": CHANNEL_RULE,
            "umg_grpc/config/file_schema.py": CONFIG_FIELD,
            "umg_grpc/config/config_values.py": CONFIG_FIELD,
            "umg_grpc/knowledge/model_catalogue.py": MODEL_IDS,
            "umg_grpc/process/administration_factory.py": FACTORY,
            "umg_grpc/process/component_factory.py": FACTORY,
            "umg_grpc/process/operation_factory.py": FACTORY,
            "umg_grpc/process/service_factory.py": FACTORY,
        },
    ),
)
"""Text generation is the default operation of a call and of a model, and has no word."""
