"""Rows about the providers and modes of models in LiteLLM's cost map, for the conversion of its configs."""

import re
from collections.abc import Mapping
from typing import Any

PROVIDER = re.compile(r"(bedrock)_converse|(vertex_ai|fireworks_ai)-.*|(.+)-(?:chat|embedding)-models")
"""Provider with a kind of models in its name."""
NO_MODEL = re.compile(r"sample_spec|(?:together-ai|fireworks-ai)-.*|.*-x-.*")
"""Keys that are no ids of models: groups of prices, and prices of one size."""
NO_MODES = frozenset({"search", "vector_store", "guardrail"})
"""Modes of entries that are no models."""
CHAT_SERVERS = frozenset({"ollama"})
"""Providers that apply the template of chats to models of any mode."""
TEXT_MODES = frozenset({"chat", "responses"})


def source_model_rows(cost_map: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the ids of the cost map by provider and mode: those without a prefix, and prefixed ones that are not of
    text models; and for each provider the aliases of newest models.
    """
    aliases = _aliases(cost_map)
    found: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
    for key, own in cost_map.items():
        entry = cost_map.get(own.get("alias_of", ""), own) if "/" not in key else own
        provider, mode = _provider(entry), entry.get("mode") or "chat"
        if provider in CHAT_SERVERS and mode == "completion":
            mode = "chat"
        if not provider or mode in NO_MODES or NO_MODEL.fullmatch(key):
            continue
        bare, prefixed = found.setdefault((provider, mode), (set(), set()))
        if "/" not in key:
            bare.add(key)
        elif mode not in TEXT_MODES and key.startswith(f"{provider}/"):
            prefixed.add(key.removeprefix(f"{provider}/"))
    for provider in aliases:
        found.setdefault((provider, "chat"), (set(), set()))
    rows = []
    for (provider, mode), (bare, prefixed) in sorted(found.items()):
        others = {"prefixed": sorted(prefixed), "aliases": aliases.get(provider, {}) if mode == "chat" else {}}
        stated = {name: value for name, value in others.items() if value}
        if bare or stated:
            rows.append({"provider": provider, "mode": mode, "models": sorted(bare), **stated})
    return rows


def _aliases(cost_map: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return the aliases of newest models, all of them of text: provider -> alias -> id, both without the prefix."""
    found: dict[str, dict[str, str]] = {}
    for key, entry in sorted(cost_map.items()):
        if target := entry.get("alias_of"):
            prefix, slash, alias = key.rpartition("/")
            provider = prefix if slash else _provider(cost_map[target])
            found.setdefault(provider, {})[alias] = target.removeprefix(f"{provider}/")
    return found


def _provider(entry: Mapping[str, Any]) -> str:
    name = str(entry.get("litellm_provider", ""))
    match = PROVIDER.fullmatch(name)
    return next(filter(None, match.groups())) if match is not None else name
