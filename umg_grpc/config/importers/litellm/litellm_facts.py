"""Facts about LiteLLM as rows with their sources: its providers, and its table of models."""

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS, Provider


class Rewrite(Struct, frozen=True, forbid_unknown_fields=True):
    """Rule that changes a model id, after the prefix of its provider is removed, into the id at the provider."""

    pattern: str
    """Regular expression of the whole id."""
    becomes: str
    """Id at the provider; `\\1` is the first group."""
    protocol: str = ""
    """Protocol that the id demands; "" for none."""
    region: str = ""
    """Region that the id states; "" for none."""


class SourceProvider(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Provider in LiteLLM: its presets, an address without a preset, or the reason why it is not converted."""

    name: str
    """Prefix of its models."""
    presets: tuple[str, ...] = ()
    """Presets for its models; the first one that serves the operation of a model applies."""
    cloud: Literal["azure", "azure_ai", "bedrock", "bedrock_mantle", "vertex", ""] = ""
    """Cloud whose addresses and credentials depend on the account."""
    base_url: str = ""
    """Address, if it has no preset. A part in `<>` differs for each account."""
    parts: Mapping[str, str] = MappingProxyType({})
    """Part of the address in `<>` -> environment variable with its value."""
    base_path: str = ""
    """Path that LiteLLM adds to a configured address that does not have it."""
    adds_version: bool = False
    """Whether LiteLLM adds the version of the preset's address to a configured address without one."""
    base_variables: tuple[str, ...] = ()
    """Environment variables with the address of a provider that has no fixed one."""
    keys: tuple[str, ...] = ()
    """Environment variables with the key, the first one that is set."""
    needs_key: bool = True
    protocols: tuple[str, ...] = ()
    """Protocols, if it has no preset."""
    compatible: tuple[str, ...] = ()
    """Protocols of servers that do not belong to the provider, but whose address is configured for it."""
    rewrites: tuple[Rewrite, ...] = ()
    unprefixed: str = ""
    """Regular expression of ids without a prefix that belong to the provider, besides those in LiteLLM's table."""
    reason: str = ""
    """Reason why it has no counterpart; "" for a provider that has one."""
    source: str
    as_of: str

    @property
    def known_presets(self) -> list[Provider]:
        """Presets of the provider that this version of the gateway has."""
        return [PROVIDER_PRESETS[name] for name in self.presets if name in PROVIDER_PRESETS]


class SourceModels(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Models that LiteLLM's cost map lists for one provider and mode."""

    provider: str
    mode: str
    models: tuple[str, ...]
    """Ids without a prefix, each of which identifies the provider."""
    prefixed: tuple[str, ...] = ()
    """Ids with the prefix of the provider, stored without the prefix."""
    aliases: Mapping[str, str] = MappingProxyType({})
    """Alias of the newest model of a series -> id that LiteLLM sends to the provider."""


@cache
def source_providers() -> Mapping[str, SourceProvider]:
    """Return the providers of LiteLLM by name."""
    return {row.name: row for row in read_rows("litellm_providers", SourceProvider)}


def known_provider(model: str) -> str:
    """Return the provider of an id without a prefix; "" if LiteLLM's table does not list the id."""
    return _providers_of_ids().get(model, "")


def known_mode(provider: str, model: str) -> str:
    """Return the LiteLLM mode of a provider's model; "" if LiteLLM's table does not list the model."""
    return _modes().get((provider, model), "")


def newest_model(provider: str, model: str) -> str:
    """Return the model id behind a LiteLLM alias at a provider; an id that is no alias is returned unchanged."""
    return _aliases().get((provider, model), model)


@cache
def _models() -> tuple[SourceModels, ...]:
    return tuple(read_rows("litellm_models", SourceModels))


@cache
def _providers_of_ids() -> Mapping[str, str]:
    return {model: row.provider for row in _models() for model in row.models}


@cache
def _modes() -> Mapping[tuple[str, str], str]:
    return {(row.provider, model): row.mode for row in _models() for model in (*row.prefixed, *row.models)}


@cache
def _aliases() -> Mapping[tuple[str, str], str]:
    return {(row.provider, alias): model for row in _models() for alias, model in row.aliases.items()}


def rewritten(provider: SourceProvider, model: str) -> tuple[str, str, str]:
    """Return the id at the provider, with the protocol and the region that its spelling states ("" for none)."""
    protocol = region = ""
    for rule in provider.rewrites:
        if (match := re.fullmatch(rule.pattern, model)) is not None:
            protocol, region = rule.protocol or protocol, match.expand(rule.region) or region
            model = match.expand(rule.becomes)
    return model, protocol, region
