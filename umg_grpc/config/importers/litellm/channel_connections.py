"""Connections of LiteLLM's deployments: the keys of a channel that hold the address and credentials of a provider."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from umg_grpc.base.wildcard_patterns import matcher
from umg_grpc.config.importers.config_text_builder import mapping
from umg_grpc.config.importers.litellm.litellm_facts import SourceProvider
from umg_grpc.config.importers.litellm.model_providers import COMPATIBLE_PROVIDER, SourceModel, protocols_of
from umg_grpc.config.importers.tracked_source_config import SourceMapping, text_of
from umg_grpc.config.importers.unserved_models import RESULT_PHRASES
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS, Provider
from umg_grpc.operations.provider_call_paths import call_path

VERSION_SEGMENT = re.compile(r"/v[0-9]+(?:beta[0-9]*)?(?:/|$)")
ADDRESS_PART = re.compile(r"<([^>]+)>")
ANY_OPERATION = ("generate", "embed")
"""Operations assumed for a pattern of models at a server without a preset."""


@dataclass(frozen=True)
class DeploymentConnection:
    """Keys of the channel that calls a deployment's model: address and credentials, not weights or limits."""

    label: str
    """Name of the provider, for the name of the channel."""
    keys: dict[str, object]
    model: str
    """Model id at the provider."""
    public: str = ""
    """Public model id, if it differs from the deployment's; "" for the deployment's."""
    comments: tuple[str, ...] = ()
    role: str = ""
    """Region, resource or operation that distinguishes the channel from others of the provider."""
    left: str = ""
    """Reason why a pattern of models does not cover all of the provider's models; "" if it does."""


def connections(model: SourceModel, public: str, params: SourceMapping) -> list[DeploymentConnection] | str:
    """Return the connections by which a deployment outside of the clouds is called, or the reason (a text) why there is
    none. `public`: public id of its model. A pattern of models has a connection for each address of the provider.
    """
    base, query = _without_query(base_of(params))
    found = _connection(model, base, params)
    if isinstance(found, str):
        return found
    if query:
        found.keys["query"] = query
    others = model.provider.known_presets[1:] if "*" in model.model and not base else []
    return [found, *(each for preset in others for each in _of_pattern(model, preset, public, params))]


def _without_query(base: str) -> tuple[str, dict[str, str]]:
    address, _, query = base.partition("?")
    parameters = dict(parse_qsl(query, keep_blank_values=True))
    return (address.rstrip("/"), parameters) if parameters else (base, {})


def _of_pattern(
    model: SourceModel, preset: Provider, public: str, params: SourceMapping
) -> Iterator[DeploymentConnection]:
    for pattern, shown in served_ids(preset, model.model, public):
        keys = with_credentials({"provider": preset.name}, model.provider, preset, params)
        yield DeploymentConnection(preset.name, keys, pattern, shown)


def served_ids(preset: Provider, model: str, public: str) -> list[tuple[str, str]]:
    """Return (provider's id, public id) of a model, or of each preset pattern that the pattern `model` covers."""
    if "*" not in model:
        return [(model, "")] if preset.has_model(model) else []
    covers = matcher([model]).match
    covered = [each.upstream for each in preset.models if covers(each.upstream.replace("*", "x"))]
    return [(pattern, _renamed(public, model, pattern)) for pattern in covered if pattern != "*"]


def _renamed(public: str, model: str, pattern: str) -> str:
    head, _, tail = model.partition("*")
    return public.replace("*", pattern.removeprefix(head).removesuffix(tail))


def _connection(model: SourceModel, base: str, params: SourceMapping) -> DeploymentConnection | str:
    """Return the connection of a deployment at its configured address ("" if there is none), or the reason (a text) why
    there is none. The connection uses a preset or describes a compatible server.
    """
    row = model.provider
    preset = _preset_at(base, row, model.operation) if base else None
    if preset is not None:
        return _of_preset(model, row, preset, "", params)
    preset = preset_for(row, model.operation, model.model)
    if base and (row.compatible or preset is None):
        return _compatible(model, row, base, params)
    if preset is not None:
        return _of_preset(model, row, preset, base, params)
    if row.base_url or row.base_variables:
        return _compatible(model, row, _own_address(row), params)
    if not row.presets:
        return "`api_base` is missing: the provider has no address of its own"
    of_model = " of this model" if preset_for(row, model.operation) is not None else ""
    return f"`{row.name}` serves no {RESULT_PHRASES[model.operation]}{of_model} here"


def base_of(params: SourceMapping) -> str:
    """Take the configured address of a deployment; "" if there is none."""
    base = params.text("api_base")
    return (base or params.text("base_url")).rstrip("/")


def preset_for(row: SourceProvider, operation: str, model: str = "") -> Provider | None:
    """Return a provider's first preset that serves an operation with a model ("" for any); None if none does."""
    wanted = protocols_of(operation)
    presets = (each for each in row.known_presets if not operation or wanted.intersection(each.protocols))
    return next((each for each in presets if _fits(each, operation, model)), None)


def _fits(preset: Provider, operation: str, model: str) -> bool:
    if operation not in {"images", "videos"} or not model or "images" in preset.protocols:
        return True
    return preset.has_model(model)


def named_protocols(protocols: tuple[str, ...], operation: str) -> list[str]:
    """Return the protocols, in their order, in which an operation can be called; "" stands for any usual operation."""
    wanted = frozenset[str]().union(*map(protocols_of, (operation,) if operation else ANY_OPERATION))
    return [name for name in protocols if name in wanted]


def key_of(row: SourceProvider, preset: Provider | None, params: SourceMapping) -> str:
    """Take a deployment's API key. If there is none, refer to LiteLLM's variable, unless the preset reads that one."""
    if key := params.text("api_key"):
        return key
    if preset is not None and (not preset.needs_key or not row.keys or set(preset.keys) & set(row.keys)):
        return ""
    return f"${{{row.keys[0]}}}" if row.keys and row.needs_key else ""


def with_headers(keys: dict[str, object], params: SourceMapping) -> dict[str, object]:
    """Return the keys of a channel with the headers that LiteLLM sends with each call of a deployment."""
    written = {**_mapping(params, "extra_headers"), **_mapping(params, "headers")}
    headers = {name: text_of(value) for name, value in written.items()}
    if organization := params.text("organization"):
        headers["OpenAI-Organization"] = organization
    if headers:
        keys["headers"] = headers
    return keys


def with_credentials(
    keys: dict[str, object], row: SourceProvider, preset: Provider | None, params: SourceMapping
) -> dict[str, object]:
    """Return the keys of a channel with the API key and the headers of a deployment."""
    if key := key_of(row, preset, params):
        keys["api_key"] = key
    return with_headers(keys, params)


def without_call(base: str, protocol: str) -> str:
    """Return an address without the path of a call at its end, with which LiteLLM permits addresses."""
    added = call_path(protocol, base)
    return base.removesuffix(added) if added is not None else base


def _of_preset(
    model: SourceModel, row: SourceProvider, preset: Provider, base: str, params: SourceMapping
) -> DeploymentConnection | str:
    keys: dict[str, object] = {"provider": preset.name}
    if model.protocol and model.protocol != preset.protocols[0]:
        if model.protocol not in preset.protocols:
            return f"`{row.name}` has no {model.protocol} API here"
        keys["protocols"] = [model.protocol]
    if base:
        beside = preset.base_urls_beside(base)
        own = tuple(name for name in preset.protocols if name in beside or name not in preset.base_urls)
        protocols = named_protocols(own, model.operation)
        if not protocols:
            return f"`{row.name}` serves no {RESULT_PHRASES[model.operation]} at another address than its own here"
        address = without_call(base, protocols[0])
        keys["base_url"] = address + (
            _version(preset) if row.adds_version and not VERSION_SEGMENT.search(address) else ""
        )
    elif row.base_variables and preset.keys == ():
        keys["base_url"] = f"${{{row.base_variables[0]}}}"
    elif not preset.is_complete:
        filled = filled_in(preset.base_url, row.parts)
        if ADDRESS_PART.search(filled) is not None:
            if not row.base_variables:
                return f"`api_base` is missing: the address {preset.base_url} depends on the account"
            filled = f"${{{row.base_variables[0]}}}"
        keys["base_url"] = filled
    return DeploymentConnection(
        preset.name, with_credentials(keys, row, preset, params), model.model, role=model.protocol
    )


def _compatible(
    model: SourceModel, row: SourceProvider, base: str, params: SourceMapping
) -> DeploymentConnection | str:
    """Return the connection to a compatible server without a preset, or the reason (a text) why there is none."""
    protocols = named_protocols(row.compatible or row.protocols, model.operation)
    if model.protocol:
        protocols = [model.protocol]
    if not protocols:
        return f"`{row.name}` serves no {RESULT_PHRASES[model.operation]} here"
    address = without_call(base, protocols[0])
    if row.base_path and not address.endswith(row.base_path):
        address += row.base_path
    keys: dict[str, object] = {"protocols": protocols, "base_url": address}
    if "messages" in protocols:
        keys["auth"] = {"kind": "bearer"}
    host = urlsplit(address).hostname or ""
    label = host if row.name in {COMPATIBLE_PROVIDER, "openai"} and "$" not in address and host else row.name
    role = model.protocol or ("" if model.operation in {"generate", ""} else RESULT_PHRASES[model.operation])
    return DeploymentConnection(label, with_credentials(keys, row, None, params), model.model, role=role)


def _version(preset: Provider) -> str:
    match = VERSION_SEGMENT.search(preset.base_url)
    return match[0].rstrip("/") if match is not None else ""


def _own_address(row: SourceProvider) -> str:
    if row.base_url:
        return filled_in(row.base_url, row.parts)
    return f"${{{row.base_variables[0]}}}"


def filled_in(address: str, parts: Mapping[str, str]) -> str:
    """Return an address with each known part in `<>` replaced by its environment variable."""
    return ADDRESS_PART.sub(lambda part: f"${{{parts[part[1]]}}}" if part[1] in parts else part[0], address)


def _preset_at(base: str, row: SourceProvider, operation: str) -> Provider | None:
    """Return the preset that has exactly the configured address and serves the operation; None if there is none. Only
    presets of the provider's vendor match, or any preset if the provider is a compatible server.
    """
    for preset in PROVIDER_PRESETS.values():
        if without_call(base, preset.protocols[0]) == preset.base_url and preset.needs_key:
            is_own = preset in row.known_presets or preset.vendor in row.presets or bool(row.compatible)
            if is_own and (not operation or protocols_of(operation).intersection(preset.protocols)):
                return preset
    return None


def _mapping(params: SourceMapping, key: str) -> Mapping[str, object]:
    return mapping(params.take(key)) if isinstance(params.peek(key), dict) else {}
