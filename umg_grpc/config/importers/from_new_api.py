"""Conversion of new-api's channels, as its admin API lists them (`GET /api/channel/`), into a config. Pure."""

from collections.abc import Mapping

import msgspec

from umg_grpc.config.importers.imported_config import ImportedConfig, literal, mapping, number, sequence
from umg_grpc.knowledge.presets import PROVIDERS
from umg_grpc.operations.provider_call_paths import call_path

OPENAI, AZURE, KLING = 1, 3, 50
"""Types of channels with an address or a key of another form."""
PRESETS: Mapping[int, str] = {
    1: "openai",
    3: "azure",
    4: "ollama",
    14: "anthropic",
    17: "dashscope",
    20: "openrouter",
    24: "gemini",
    25: "moonshot",
    26: "zai",
    34: "cohere",
    35: "minimax",
    38: "jina",
    42: "mistral",
    43: "deepseek",
    45: "ark",
    48: "xai",
    50: "kling",
}
"""Type of a channel (https://github.com/QuantumNous/new-api, constant/channel.go) -> preset."""
COMPATIBLE: Mapping[int, str] = {8: "", 27: "https://api.perplexity.ai", 40: "https://api.siliconflow.cn/v1"}
"""Type of a channel without a preset -> address of its chat completions; "" for that of the channel."""
OPENAI_PATHS = frozenset({1, 4, 20, 25, 42, 43, 48})
"""Types whose `base_url` has no version, which the other gateway adds with the path."""
ENABLED = 1
NOTED = {"param_override": "callers send these fields", "header_override": "set `headers` of the channel"}


def from_new_api(text: str) -> ImportedConfig:
    """Convert the JSON list of channels, or the API answer that contains it. Raise ValueError for any other text."""
    try:
        decoded = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ValueError(f"expected JSON: {error}") from None
    data = mapping(decoded).get("data", decoded)
    rows = sequence(mapping(data).get("items", data))
    if not rows or not all(isinstance(row, dict) and "type" in row for row in rows):
        raise ValueError("expected channels of new-api: a JSON list, or the answer of GET /api/channel/")
    made = ImportedConfig("new-api")
    for row in map(mapping, rows):
        _add(made, row)
    return made


def _add(made: ImportedConfig, row: Mapping[str, object]) -> None:
    kind, name = int(number(row.get("type")) or 0), str(row.get("name") or "channel")
    keys = _keys(kind, row)
    if keys is None:
        made.lose(f"channel `{name}` of type {kind}", "write a channel with `protocols` and `base_url`")
        return
    channel = made.new_channel(name, keys)
    if "api_key" not in keys and _needs_key(kind):
        channel.comments.append("the export has no key: the variable of the provider is used, or set api_key")
    if number(row.get("status")) != ENABLED and row.get("status") is not None:
        channel.comments.append("disabled there: remove this channel, or give it a key that works")
    renamed = mapping(_json(row.get("model_mapping")))
    models = dict.fromkeys(part.strip() for part in str(row.get("models") or "").split(","))
    for model in filter(None, models):
        channel.add(model, str(renamed.get(model, model)))
    for key, remedy in NOTED.items():
        if _json(row.get(key)):
            made.lose(f"{key} of channel `{name}`", remedy)
    groups = str(row.get("group") or "default")
    if groups != "default":
        made.lose(f"group {groups} of channel `{name}`", "restrict keys by `umg keys create --channels`")


def _keys(kind: int, row: Mapping[str, object]) -> dict[str, object] | None:
    """Return the config keys of a channel of new-api, except `models`; None if its type has no counterpart.

    `kind`: number of the type; `row`: the channel as new-api lists it.
    """
    base = str(row.get("base_url") or "").rstrip("/")
    keys: dict[str, object] = {}
    if kind in PRESETS and (kind != OPENAI or not base or base == "https://api.openai.com"):
        keys["provider"] = PRESETS[kind]
    elif kind in COMPATIBLE or kind == OPENAI:
        keys["protocols"] = ["chat", "embeddings"]
        base = base or COMPATIBLE.get(kind, "")
    else:
        return None
    if base:
        keys["base_url"] = _base_url(kind, base)
    secrets = [line.strip() for line in str(row.get("key") or "").splitlines() if line.strip()]
    written = [literal(secret.replace("|", ":") if kind == KLING else secret) for secret in secrets]
    if written:
        keys["api_key"] = written[0] if len(written) == 1 else written
    priority, weight = number(row.get("priority")), number(row.get("weight"))
    if priority:
        keys["priority"] = -int(priority)  # there the highest comes first
    if weight:
        keys["weight"] = int(weight)
    return keys


def _needs_key(kind: int) -> bool:
    return kind not in PRESETS or PROVIDERS[PRESETS[kind]].needs_key


def _base_url(kind: int, base: str) -> str:
    """Return the base URL `base` of a channel of the type `kind` with the version that new-api appends, and without the
    path of a call.
    """
    added = call_path("chat", base)
    base = base.removesuffix(added) if added is not None else base
    if kind == AZURE:
        return base if base.endswith("/openai/v1") else f"{base}/openai/v1"
    version = {14: "/v1", 24: "/v1beta"}.get(kind, "/v1" if kind in OPENAI_PATHS else "")
    return base if not version or version in base else f"{base}{version}"


def _json(value: object) -> object:
    """Return the decoded value of a JSON text; None for invalid JSON. Any other value, and an empty text, is returned
    unchanged.
    """
    if not isinstance(value, str) or not value.strip():
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return None
