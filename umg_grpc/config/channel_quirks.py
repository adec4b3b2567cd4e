"""The section `quirks` of a channel in the config: restrictions of its models that an operator states."""

from typing import Annotated, Literal

import msgspec

from umg_grpc.config.file_sections import ConfigEntry
from umg_grpc.config.yaml_document import Path, YamlDocument
from umg_grpc.knowledge.model_quirk_definitions import (
    HASH_CHARACTERS,
    NO_QUIRKS,
    Breakpoints,
    ChatTools,
    Quirks,
    ReasoningForm,
    Sampling,
    SchemaDialect,
    SearchWithFunctions,
    SystemPlace,
    Thinking,
    ToolChoices,
)
from umg_grpc.knowledge.vendor_client_headers import HEADER_OWNERS
from umg_grpc.v1.limits import MAX_COUNT

Characters = Annotated[int, msgspec.Meta(ge=1, le=4096)]
Tokens = Annotated[int, msgspec.Meta(ge=1, le=MAX_COUNT)]


class QuirksEntry(ConfigEntry, frozen=True):
    """Restrictions of the channel's models, which override the built-in table of restrictions."""

    min_user_characters: Characters | None = None
    max_user_characters: Annotated[int, msgspec.Meta(ge=16, le=4096)] | None = None
    plain_user: bool | None = None
    web_search: bool | None = None
    search_with_functions: SearchWithFunctions | None = None
    reasoning: bool | None = None
    reasoning_budget: bool | None = None
    reasoning_content: bool | None = None
    reasoning_required: bool | None = None
    adaptive: bool | None = None
    signatures: bool | None = None
    top_k: bool | None = None
    custom_tools: bool | None = None
    threads: bool | None = None
    sampling: bool | Sampling | None = None
    max_output_tokens: Tokens | None = None
    accepts: list[str] | None = None
    rejects: list[str] | None = None
    rejects_beside_reasoning: list[str] | None = None
    renames: dict[str, str] | None = None
    service_tiers: list[str] | None = None
    max_stop_sequences: Annotated[int, msgspec.Meta(ge=0, le=1000)] | None = None
    max_candidates: Annotated[int, msgspec.Meta(ge=1, le=1000)] | None = None
    thinking: Thinking | None = None
    efforts: list[str] | None = None
    nearest_efforts: dict[str, str] | None = None
    reasoning_form: ReasoningForm | None = None
    tool_choices: ToolChoices | None = None
    chat_tools: ChatTools | None = None
    schema_dialect: SchemaDialect | None = None
    json_word: bool | None = None
    file_form: Literal["document_url"] | None = None
    call_ids: Literal["nine"] | None = None
    developer: bool | None = None
    system_place: SystemPlace | None = None
    prefill: bool | None = None
    prefix: bool | None = None
    user_after_tool: bool | None = None
    streams_tools: bool | None = None
    result_media: bool | None = None
    versions: list[str] | None = None
    exact_media_types: bool | None = None
    inputs: list[str] | None = None
    breakpoints: Breakpoints | None = None
    cache_key: bool | None = None
    cache_scopes: bool | None = None
    session_header: Annotated[str, msgspec.Meta(pattern=r"^x-[a-z0-9-]+$")] | None = None
    client_headers: list[str] | None = None
    compaction: bool | None = None
    client_lines: list[str] | None = None


def quirks(document: YamlDocument, path: Path, written: QuirksEntry) -> Quirks:
    """Return the quirks that an operator wrote at `path` of the config, and report invalid ones."""
    max_characters = written.max_user_characters or HASH_CHARACTERS
    if (written.min_user_characters or 0) > min(max_characters, HASH_CHARACTERS):
        document.problem((*path, "min_user_characters"), f"expected at most {min(max_characters, HASH_CHARACTERS)}")
    if written == QuirksEntry():
        return NO_QUIRKS
    if unknown := set(written.client_headers or ()) - HEADER_OWNERS:
        document.problem(
            (*path, "client_headers"), f"expected {' or '.join(sorted(HEADER_OWNERS))}, got {min(unknown)}"
        )
    values = msgspec.structs.asdict(written)
    if isinstance(written.sampling, bool):
        values["sampling"] = "all" if written.sampling else "never"
    for name in ("accepts", "rejects", "rejects_beside_reasoning", "inputs"):
        values[name] = None if values[name] is None else frozenset(values[name])
    for name in ("service_tiers", "efforts", "versions", "client_headers", "client_lines"):
        values[name] = None if values[name] is None else tuple(values[name])
    return Quirks(**values)
