"""Provider of a model in a LiteLLM config: found by prefix, address, LiteLLM's tables, or our presets' patterns."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from urllib.parse import urlsplit

from umg_grpc.config.importers.litellm.litellm_facts import (
    SourceProvider,
    known_mode,
    known_provider,
    newest_model,
    rewritten,
    source_providers,
)
from umg_grpc.config.importers.tracked_source_config import VARIABLE_REFERENCE
from umg_grpc.config.importers.unserved_models import RESULT_PHRASES
from umg_grpc.knowledge.families.image_model_rules import IMAGE_FAMILIES
from umg_grpc.knowledge.families.video_model_rules import VIDEO_FAMILIES
from umg_grpc.knowledge.operations_by_model_id import known_operations
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS
from umg_grpc.knowledge.vendor_addresses import LOCAL_HOSTS
from umg_grpc.operations import OPERATIONS_BY_VALUE, SCOPE_OPERATIONS

COMPATIBLE_PROVIDER = "custom_openai"
"""Provider name for a model of which only the address is known."""
MODE_SCOPES: Mapping[str, str] = {
    "chat": "generate",
    "responses": "generate",
    "embedding": "embed",
    "rerank": "rerank",
    "image_generation": "images",
    "image_edit": "images",
    "video_generation": "videos",
    "moderation": "moderate",
    "audio_speech": "speech",
    "audio_transcription": "transcribe",
}
"""LiteLLM's `mode` -> scope of the operations that it means, including operations that are not served here."""
UNSERVED_MODES: Mapping[str, str] = {
    "completion": "text completions (`/v1/completions`) are not served; use a chat model of the provider",
    "realtime": "realtime sessions are not served",
    "batch": "batches are not served; without this mode its other calls are",
    "ocr": "the reading of documents (`ocr`) is not served",
    "search": "search is not served",
}


@dataclass(frozen=True)
class SourceModel:
    """Model as a deployment of LiteLLM names it."""

    provider: SourceProvider
    model: str
    """Id at the provider; "" for the only model of an address."""
    operation: str
    """Scope of the model's operations; "" for a pattern, whose models may have any operations."""
    protocol: str = ""
    """Protocol that the spelling of the model id demands; "" if there is none."""
    region: str = ""
    """Region that the spelling of the model id states; "" if there is none."""
    alias: str = ""
    """Alias of LiteLLM for the newest model of a series, which `model` replaces; "" if there is none."""


def source_model(written: str, provider: str, base: str, mode: str, base_model: str = "") -> SourceModel | str:
    """Return the model that a deployment names, or the reason (a text) why it cannot be converted. `written`: model id
    with the provider's prefix; `provider`: value of `custom_llm_provider`; `base`: configured address; `mode`:
    LiteLLM's mode; `base_model`: id of the model for which the account chose the name `written`.
    """
    row, model = _provider(written, provider, base)
    if VARIABLE_REFERENCE.fullmatch(written):
        return "its id is in an environment variable, by which no provider is found: write the id"
    if row is None:
        return "its id names no provider that is known here; write a channel with `protocols` and `base_url`"
    if row.reason:
        return row.reason
    model, protocol, region = rewritten(row, model)
    alias, model = model, newest_model(row.name, model)
    stated = mode if mode not in {"", "completion"} else known_mode(row.name, model)
    operation = MODE_SCOPES.get(stated) if stated else _operation(row, base_model or model)
    if stated and operation not in SCOPE_OPERATIONS:
        return UNSERVED_MODES.get(stated, f"models of the mode `{stated}` are not served")
    if operation is None:
        return f"it has no operation that is served: {', '.join(RESULT_PHRASES[scope] for scope in SCOPE_OPERATIONS)}"
    protocol = protocol or ("responses" if stated == "responses" else "")
    shown = "" if "*" in model else operation
    return SourceModel(row, model, shown, protocol, region, alias if alias != model else "")


def _provider(written: str, provider: str, base: str) -> tuple[SourceProvider | None, str]:
    """Return the provider (None if unknown) and the model id without the provider's prefix."""
    if provider:
        return _named(provider), written.removeprefix(f"{provider}/")
    prefix, slash, rest = written.partition("/")
    if slash and (row := _named(prefix)) is not None:
        return row, rest
    by_address = _hosts().get(urlsplit(base).hostname or "")
    name = by_address or _by_table(written) or _by_pattern(written) or (COMPATIBLE_PROVIDER if base else "")
    return _named(name), written


@cache
def _named(name: str) -> SourceProvider | None:
    return source_providers().get(name) or (_of_preset(name) if name in PROVIDER_PRESETS else None)


def _of_preset(name: str) -> SourceProvider:
    preset = PROVIDER_PRESETS[name]
    return SourceProvider(
        name=name,
        presets=(name,),
        needs_key=preset.needs_key,
        keys=preset.keys,
        source=preset.source,
        as_of=preset.as_of,
    )


@cache
def _hosts() -> Mapping[str, str]:
    """Return the provider of each host. If several providers share a host, the first one counts."""
    found: dict[str, str] = {}
    for row in source_providers().values():
        for url in (row.base_url, *(preset.base_url for preset in row.known_presets if not row.cloud)):
            host = urlsplit(url).hostname or ""
            if "." in host and "<" not in host and host not in LOCAL_HOSTS:
                found.setdefault(host, row.name)
    return found


def _by_table(model: str) -> str:
    if known := known_provider(model):
        return known
    rows = (row for row in source_providers().values() if row.unprefixed)
    return next((row.name for row in rows if re.fullmatch(row.unprefixed, model, re.IGNORECASE)), "")


def _by_pattern(model: str) -> str:
    for name, preset in PROVIDER_PRESETS.items():
        if any(each.id == each.upstream and each.matches(model) for each in preset.models):
            return name
    return ""


def _operation(row: SourceProvider, model: str) -> str | None:
    operations = known_operations(model)
    if operations is not None:
        return next((scope for scope in SCOPE_OPERATIONS if operations.intersection(SCOPE_OPERATIONS[scope])), None)
    return _operation_of_presets(row, model) or _only_operation(row)


def _operation_of_presets(row: SourceProvider, model: str) -> str:
    patterns = (each for preset in row.known_presets for each in preset.models if each.family is not None)
    family = next((each.family for each in patterns if each.matches(model)), None)
    if family in VIDEO_FAMILIES:
        return "videos"
    return "images" if family in IMAGE_FAMILIES else ""


def _only_operation(row: SourceProvider) -> str:
    protocols = {*row.protocols, *row.compatible, *(each for preset in row.known_presets for each in preset.protocols)}
    scopes = (scope for scope in MODE_SCOPES.values() if protocols_of(scope) & protocols)
    return "generate" if row.cloud else next(scopes, "generate")


def protocols_of(operation: str) -> frozenset[str]:
    """Return the protocols in which the operations of a scope can be called; none for ""."""
    return frozenset(
        name for value in SCOPE_OPERATIONS.get(operation, ()) for name in OPERATIONS_BY_VALUE[value].protocols
    )
