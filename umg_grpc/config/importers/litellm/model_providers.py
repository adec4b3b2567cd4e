"""Providers of the models that a LiteLLM config names: by their prefix, the address, LiteLLM's own tables, or the
patterns of our presets.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from urllib.parse import urlsplit

from umg_grpc.config.importers.litellm.source_config import VARIABLE
from umg_grpc.config.importers.litellm.source_facts import (
    SourceProvider,
    known_mode,
    known_model,
    newest_model,
    rewritten,
    source_providers,
)
from umg_grpc.knowledge.families.image import IMAGE_FAMILIES
from umg_grpc.knowledge.families.video import FAMILIES as VIDEO_FAMILIES
from umg_grpc.knowledge.presets import PROVIDERS
from umg_grpc.knowledge.vendors import LOCAL_HOSTS
from umg_grpc.operations import OPERATIONS, SCOPES

COMPATIBLE = "custom_openai"
"""Provider of a model that only its address describes."""
MODES: Mapping[str, str] = {
    "chat": "generate",
    "responses": "generate",
    "embedding": "embed",
    "rerank": "rerank",
    "image_generation": "images",
    "image_edit": "images",
    "video_generation": "videos",
}
"""Mode of LiteLLM -> operations that it stands for, by their scope."""
WORDS = (
    (re.compile(r"rerank", re.IGNORECASE), "rerank"),
    (re.compile(r"embed|(?:^|/)(?:bge|e5|gte|uae|all-minilm)-", re.IGNORECASE), "embedding"),
)
"""Words in ids of models, by which makers name the kind -> mode, the first one that matches."""
UNSERVED_MODES: Mapping[str, str] = {
    "completion": "text completions (`/v1/completions`) are not served; use a chat model of the provider",
    "audio_speech": "speech is not served",
    "audio_transcription": "transcription is not served",
    "moderation": "moderation is not served",
    "realtime": "realtime sessions are not served",
    "batch": "batches are not served; its calls would be served as those of a model of mode chat",
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
    """Scope of its operations; "" for a pattern of models, which may have any."""
    protocol: str = ""
    """Protocol that its spelling demands; "" for none."""
    region: str = ""
    """Region that its spelling states; "" for none."""
    alias: str = ""
    """Alias of LiteLLM for the newest model of a series, in whose place `model` is; "" for none."""


def source_model(written: str, provider: str, base: str, mode: str) -> SourceModel | str:
    """Return the model that a deployment names, or the reason (a text) why it cannot be converted.

    `written`: its id with the prefix; `provider`: value of `custom_llm_provider`; `base`: configured address; `mode`:
    that of LiteLLM; each "" for none.
    """
    row, model = _provider(written, provider, base)
    if VARIABLE.fullmatch(written):
        return "its id is in an environment variable, by which no provider is found: write the id"
    if row is None:
        return "its id names no provider that is known here; write a channel with `protocols` and `base_url`"
    if row.reason:
        return row.reason
    model, protocol, region = rewritten(row, model)
    alias, model = model, newest_model(row.name, model)
    if not mode or mode == "completion":
        mode = known_mode(row.name, model) or _mode_of_presets(row, model) or _mode_of_name(model) or _only_mode(row)
    if mode not in MODES:
        return UNSERVED_MODES.get(mode, f"models of the mode {mode} are not served")
    operation = "" if "*" in model else MODES[mode]
    protocol = protocol or ("responses" if mode == "responses" else "")
    return SourceModel(row, model, operation, protocol, region, alias if alias != model else "")


def _provider(written: str, provider: str, base: str) -> tuple[SourceProvider | None, str]:
    """Return the provider, None if it is unknown, and the id without the prefix of the provider."""
    if provider:
        return _named(provider), written.removeprefix(f"{provider}/")
    prefix, slash, rest = written.partition("/")
    if slash and (row := _named(prefix)) is not None:
        return row, rest
    name = _by_address(base) or _by_table(written) or _by_pattern(written) or (COMPATIBLE if base else "")
    return _named(name), written


@cache
def _named(name: str) -> SourceProvider | None:
    """Return the provider of a prefix: one of LiteLLM, or a preset of ours with this name."""
    return source_providers().get(name) or (_of_preset(name) if name in PROVIDERS else None)


def _of_preset(name: str) -> SourceProvider:
    preset = PROVIDERS[name]
    return SourceProvider(
        name=name,
        presets=(name,),
        needs_key=preset.needs_key,
        keys=preset.keys,
        source=preset.source,
        as_of=preset.as_of,
    )


def _by_address(base: str) -> str:
    """Return the name of the provider whose own address a deployment has; "" for none."""
    return _hosts().get(urlsplit(base).hostname or "", "")


@cache
def _hosts() -> Mapping[str, str]:
    """Return the names of the providers with a host of their own, by it; of several with a host, the first counts."""
    found: dict[str, str] = {}
    for row in source_providers().values():
        for url in (row.base_url, *(preset.base_url for preset in row.known_presets if not row.cloud)):
            host = urlsplit(url).hostname or ""
            if "." in host and "<" not in host and host not in LOCAL_HOSTS:
                found.setdefault(host, row.name)
    return found


def _by_table(model: str) -> str:
    """Return the name of the provider that LiteLLM finds by an id without a prefix; "" for none."""
    if (known := known_model(model)) is not None:
        return known.provider
    rows = (row for row in source_providers().values() if row.unprefixed)
    return next((row.name for row in rows if re.fullmatch(row.unprefixed, model, re.IGNORECASE)), "")


def _by_pattern(model: str) -> str:
    """Return the name of the first preset of a vendor that has a pattern for an id; "" for none."""
    for name, preset in PROVIDERS.items():
        if any(each.id == each.upstream and fnmatchcase(model, each.id) for each in preset.models):
            return name
    return ""


def _mode_of_presets(row: SourceProvider, model: str) -> str:
    """Return the mode by the family of the pattern of the provider's presets that an id fits; "" if none has one."""
    patterns = (each for preset in row.known_presets for each in preset.models if each.family is not None)
    family = next((each.family for each in patterns if fnmatchcase(model, each.upstream)), None)
    if family in VIDEO_FAMILIES:
        return "video_generation"
    return "image_generation" if family in IMAGE_FAMILIES else ""


def _mode_of_name(model: str) -> str:
    """Return the mode of an id of another vendor's model, or the one that its words state; "" if it is unknown."""
    if (known := known_model(model.rpartition("/")[2])) is not None:
        return known.mode
    return next((mode for words, mode in WORDS if words.search(model)), "")


def _only_mode(row: SourceProvider) -> str:
    """Return the mode of a model that nothing describes: `chat`, unless the provider serves no texts."""
    protocols = {*row.protocols, *row.compatible, *(each for preset in row.known_presets for each in preset.protocols)}
    modes = (mode for mode, scope in MODES.items() if protocols_of(scope) & protocols)
    return "chat" if row.cloud else next(modes, "chat")


def protocols_of(operation: str) -> frozenset[str]:
    """Return the protocols in which the operations of a scope can be called; none for ""."""
    return frozenset(name for value in SCOPES.get(operation, ()) for name in OPERATIONS[value].protocols)
