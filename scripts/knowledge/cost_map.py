"""Rows about models, from the cost map in the package `litellm`."""

from collections.abc import Iterator, Mapping
from typing import Any

from umg_grpc.knowledge.model_fact_types import EFFORT_ORDER
from umg_grpc.knowledge.model_id_spellings import spellings
from umg_grpc.knowledge.public_prices.litellm_cost_map import MODEL_VENDORS

COMMON_EFFORTS = frozenset({"low", "medium", "high"})
"""Efforts that each model with efforts accepts, unless a flag excludes them."""
TEXT_MODES = frozenset({"chat", "responses"})
MEANINGS = {
    ("thinking_on_by_default", True): ("thinking", "on"),
    ("thinking_always_on", True): ("thinking", "always"),
    ("supports_sampling_params", False): ("sampling", "never"),
    ("supports_forced_tool_use", False): ("forced_tools", "none"),
}
"""Flag of the cost map, with its value -> fact; any other value has no meaning. A later one has precedence."""
FLAGS = {
    "supports_adaptive_thinking": "adaptive",
    "supports_assistant_prefill": "prefill",
    "supports_mid_conversation_system": "system_anywhere",
    "supports_response_schema": "json_schema",
}
VALUES = {
    "default_reasoning_effort": "default_effort",
    "max_input_tokens": "input_tokens",
    "max_output_tokens": "output_tokens",
    "deprecation_date": "retired",
    "successor_model": "successor",
}
INPUTS = {
    "supports_vision": "image",
    "supports_pdf_input": "file",
    "supports_audio_input": "audio",
    "supports_video_input": "video",
}
ABILITIES = {
    "supports_function_calling": "tools",
    "supports_parallel_function_calling": "parallel_tools",
    "supports_web_search": "search",
    "supports_reasoning": "reasoning",
    **INPUTS,
}
ENDPOINTS = {"/v1/chat/completions": "chat", "/v1/responses": "responses"}


def model_rows(cost_map: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows about models of the cost map, sorted by vendor and model.

    Of several keys for one model and vendor (regions, prefixes) the shortest decides. A dated model without facts of
    its own has no row, since it is found without its date. Abilities alone make no row: one without other facts would
    hide the common facts of its series.
    """
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    abilities: dict[tuple[str, str], dict[str, Any]] = {}
    for key in sorted(cost_map, key=lambda key: (len(key), key)):
        entry = cost_map[key]
        vendor = MODEL_VENDORS.get(entry.get("litellm_provider", ""))
        if vendor is None or entry.get("mode") not in TEXT_MODES:
            continue
        model = spellings(key)[0]
        if vendor == "bedrock" and model.startswith("claude"):
            vendor = "bedrock-anthropic"
        if facts := dict(_facts(entry)):
            rows.setdefault((vendor, model), facts)
            abilities.setdefault((vendor, model), _abilities(entry))
    return [
        {"model": model, "vendor": vendor} | facts | abilities[vendor, model]
        for (vendor, model), facts in sorted(rows.items())
        if not any(rows.get((vendor, other)) == facts for other in spellings(model)[1:])
    ]


def _facts(entry: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the facts of one entry of the cost map. An absent flag is unknown there, not false."""
    if (efforts := _efforts(entry)) is not None:
        yield "efforts", efforts
    for (flag, value), fact in MEANINGS.items():
        if entry.get(flag) is value:
            yield fact
    for flag, name in FLAGS.items():
        if flag in entry:
            yield name, entry[flag]
    for key, name in VALUES.items():
        if isinstance(entry.get(key), int | str):
            yield name, entry[key]
    if "prompt_cache_min_tokens" in entry:
        yield "cache_min_tokens", int(entry["prompt_cache_min_tokens"])
    if endpoints := _endpoints(entry):
        yield "endpoints", endpoints
    if "supported_modalities" in entry:
        yield "inputs", sorted(_inputs(entry))


def _abilities(entry: Mapping[str, Any]) -> dict[str, Any]:
    found = sorted(name for flag, name in ABILITIES.items() if entry.get(flag))
    return {"abilities": found} if found else {}


def _inputs(entry: Mapping[str, Any]) -> set[str]:
    kinds = {*entry["supported_modalities"], *(name for flag, name in INPUTS.items() if entry.get(flag))}
    if "image" in kinds and entry.get("supports_pdf_input") is not False:
        kinds.add("file")
    return kinds - {"text"}


def _endpoints(entry: Mapping[str, Any]) -> list[str]:
    named = [name for path, name in ENDPOINTS.items() if path in entry.get("supported_endpoints", ())]
    return named or (["responses"] if entry["mode"] == "responses" else [])


def _efforts(entry: Mapping[str, Any]) -> list[str] | None:
    """Return the efforts that an entry names; None if it names none."""
    if levels := entry.get("reasoning_effort_levels"):
        return [effort for effort in EFFORT_ORDER if effort in levels]
    flags = {effort: entry.get(f"supports_{effort}_reasoning_effort") for effort in EFFORT_ORDER}
    if not entry.get("supports_reasoning") or not any(flags.values()):
        return None
    return [effort for effort in EFFORT_ORDER if flags[effort] or (effort in COMMON_EFFORTS and flags[effort] is None)]
