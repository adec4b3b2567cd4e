"""The packages that serve all formats name none of them: a format's properties are in its row."""

import ast
from collections.abc import Iterator
from pathlib import Path

from umg_grpc.wire import TEXT_FORMATS

ROOT = Path(__file__).parents[3]
PACKAGES = ("umg_grpc/service", "umg_grpc/config", "umg_grpc/access", "umg_grpc/routing", "http_facade")
TABLE = "http_facade/routes.py"
"""Table of the paths, which names the format of each."""
FIELD = "the canonical field `messages`, for example in `RequestNotes.edited`"
KEYWORD = "the keyword of OpenAPI"
CONVERTED = "the protocol of a converted channel"
OTHERS = {
    ("http_facade/exchange/unknown_paths.py", "native"): "the name of an API in error messages",
    ("http_facade/openapi/openapi_document.py", "responses"): KEYWORD,
    ("http_facade/openapi/rpc_operations.py", "responses"): KEYWORD,
    ("umg_grpc/config/importers/litellm/channel_connections.py", "messages"): CONVERTED,
    ("umg_grpc/config/importers/litellm/cloud_connections.py", "chat"): CONVERTED,
    ("umg_grpc/config/importers/litellm/cloud_connections.py", "messages"): CONVERTED,
    ("umg_grpc/config/importers/litellm/model_providers.py", "chat"): CONVERTED,
    ("umg_grpc/config/importers/litellm/model_providers.py", "responses"): CONVERTED,
    ("umg_grpc/config/file_schema.py", "responses"): "the key of the config for stored responses",
    ("umg_grpc/service/conversations/stored_responses.py", "messages"): FIELD,
    ("umg_grpc/service/conversations/account_object_ownership.py", "messages"): FIELD,
    ("umg_grpc/service/guardrails/guard_driver.py", "messages"): FIELD,
    ("umg_grpc/service/pipeline/maximum_call_cost.py", "messages"): FIELD,
    ("umg_grpc/service/operations/generate/compaction_during_a_call.py", "messages"): FIELD,
    ("umg_grpc/service/operations/generate/required_content.py", "messages"): "a field in an error",
    ("umg_grpc/service/operations/generate/text_response_finishing.py", "messages"): FIELD,
    ("umg_grpc/service/operations/generate/text_pipeline.py", "messages"): FIELD,
    ("umg_grpc/service/operations/generate/text_request_encoder.py", "messages"): FIELD,
}
"""(module, literal) -> its meaning, where the literal only looks like the name of a format."""


def literals() -> Iterator[tuple[str, str]]:
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in TEXT_FORMATS:
                    yield path.relative_to(ROOT).as_posix(), node.value


def test_no_package_outside_the_codecs_names_a_text_format() -> None:
    assert {found for found in literals() if found[0] != TABLE} == OTHERS.keys()
