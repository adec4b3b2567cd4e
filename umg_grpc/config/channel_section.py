"""Channels in the config: reads the section `channels`, fills in presets of providers, and checks all keys."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import PurePath
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec

from umg_grpc.config.channel_addresses import base_url_of, base_urls_of, check_parameters, preset_address
from umg_grpc.config.channel_credentials import (
    api_keys,
    auth_of,
    check_auth,
    check_headers,
    check_query,
    cloud_auth,
    located,
)
from umg_grpc.config.channel_quirks import QuirksEntry, quirks
from umg_grpc.config.config_values import DIRECT_ROUTE, SIMULATED_PROTOCOL, Channel, ChannelModel
from umg_grpc.config.file_sections import KEYLESS_AUTH, Auth, ConfigEntry, Seconds, Timeout
from umg_grpc.config.price_settings import price_region, unpriced
from umg_grpc.config.typed_sections_from_yaml import any_of, read_entry, similar
from umg_grpc.config.value_parsers import family, url
from umg_grpc.config.yaml_document import Path, Value, YamlDocument
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS, Provider
from umg_grpc.operations import OPERATIONS_BY_VALUE, ModelOperation
from umg_grpc.operations.image_operation import IMAGE_GENERATION
from umg_grpc.operations.provider_protocols_by_name import (
    has_input_limit,
    key_header,
    model_list,
    protocol_by_other_name,
    provider_protocols,
)
from umg_grpc.operations.video_operation import VIDEO_CREATION
from umg_grpc.wire.provider_protocols import TEXT_PROTOCOLS, has_cache_marks, stores_prompts

OWN_PROTOCOLS = ("local", SIMULATED_PROTOCOL)
"""Upstreams inside the gateway: each is the only protocol of its channel, and takes no network settings."""
OPERATION_PROTOCOLS: Mapping[ModelOperation, Collection[str]] = {
    value: row.protocols for value, row in OPERATIONS_BY_VALUE.items()
}


def served_protocols() -> tuple[str, ...]:
    """Return the names of all protocols that a channel may list in the config."""
    return (*dict.fromkeys(chain.from_iterable(OPERATION_PROTOCOLS.values())), *OWN_PROTOCOLS)


DISCOVER_MODELS, ANY_MODEL = "discover", "*"
"""Value of `models` that selects all models in the provider's list, and the pattern that matches every model."""
CHANNEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MODEL_ID = re.compile(r"[^\s*\x00-\x1f\x7f]{1,256}")  # without `*`, which is the wildcard of patterns
MODEL_PATTERN = re.compile(r"(?=.{1,256}$)[^\s*\x00-\x1f\x7f]*\*?[^\s*\x00-\x1f\x7f]*")
UPSTREAM_KEYS = (
    *(
        "discover",
        "base_url",
        "account",
        "base_urls",
        "api_key",
        "auth",
        "headers",
        "query",
        "proxy",
        "ca_file",
        "shared_objects",
    ),
    "price_region",
)
"""Keys that a channel with a protocol inside the gateway (`OWN_PROTOCOLS`) must not have."""


class _ModelEntry(ConfigEntry, frozen=True):
    id: str
    upstream: str | None = None
    """Id at the provider, with a `*` for the match of the `*` in `id`; the same as `id` if unset."""
    family: str | None = None
    """Family whose rules apply, for example `famG`; derived from the id if unset."""


class _ChannelEntry(ConfigEntry, frozen=True):
    name: str = ""
    """Name in logs, metrics and keys: letters, digits, `.`, `_`, `-`; the name of its `provider` if unset."""
    provider: str | None = None
    """Preset that fills in the keys that are unset; `umg providers` lists all."""
    protocols: Annotated[list[str], msgspec.Meta(min_length=1)] = msgspec.field(default_factory=list)
    models: Annotated[list[str | _ModelEntry], msgspec.Meta(min_length=1)] = msgspec.field(default_factory=list)
    """Models and patterns of models; a text is the `id`. Those of its `provider` if unset; `discover` in place of the
    list for all that the provider lists.
    """
    discover: bool | None = None
    """Whether the models that the provider lists, and that a pattern matches, are listed too; if unset, only with the
    models of its `provider` or the pattern `*`.
    """
    base_url: str | None = None
    account: dict[str, str] = msgspec.field(default_factory=dict)
    """Parts in `<>` of the URL of its `provider`, in place of `base_url`: `{project: my-project, region: eu}`."""
    base_urls: dict[str, str] = msgspec.field(default_factory=dict)
    """URL in place of `base_url` for some of the protocols, by the protocol; those of its `provider` beside its
    `base_url`.
    """
    api_key: str | list[str] | None = None
    """Key of the provider, or keys that are used in turn; that in the variable of its `provider` if unset."""
    auth: Auth | None = None
    """Way of sending the key; that of the wire format if unset."""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    query: dict[str, str] = msgspec.field(default_factory=dict)
    proxy: str | None = None
    """URL of an HTTP proxy, or `direct` for none; that of the environment if unset."""
    ca_file: str | None = None
    priority: Annotated[int, msgspec.Meta(ge=-1_000_000, le=1_000_000)] = 0
    weight: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 1
    timeout: Seconds | Timeout = Timeout()
    shared_objects: bool = False
    pace: Annotated[float, msgspec.Meta(ge=0, le=1_000_000)] | None = None
    max_inputs: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    quirks: QuirksEntry = QuirksEntry()
    heal: bool = True
    prompt_caching: Literal["auto", "off", "explicit"] | None = None
    concurrency: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    unpriced: str | dict[str, object] | None = None
    """Prices of its models without one: `free`, `refuse`, or as `price` of a model; those of the config if unset."""
    price_region: str | None = None


CHANNEL_TYPE: type[ConfigEntry] = _ChannelEntry
"""Type of an entry of `channels`."""


def channels(document: YamlDocument, values: Value, directory: PurePath) -> Iterator[Channel]:
    """Yield the valid channels of the section `channels`, and report problems. Paths are relative to `directory`."""
    names: set[str] = set()
    for position, value in enumerate(values if isinstance(values, list) else []):
        path: Path = ("channels", position)
        only = isinstance(value, dict) and value.get("models") == DISCOVER_MODELS
        without = {key: child for key, child in value.items() if key != "models"} if isinstance(value, dict) else value
        written = read_entry(document, path, without if only else value, _ChannelEntry)
        entry = _with_preset(document, path, written) if written is not None else None
        if entry is None:
            continue
        if only and not entry.models:
            entry = msgspec.structs.replace(entry, models=[ANY_MODEL])
        if not CHANNEL_NAME.fullmatch(entry.name):
            document.problem((*path, "name"), "expected up to 64 letters, digits, `.`, `_` or `-`")
        elif entry.name in names:
            document.problem((*path, "name"), f"expected a name of its own; `{entry.name}` is taken")
        names.add(entry.name)
        protocols = _protocols(document, (*path, "protocols"), entry.protocols)
        for row in (IMAGE_GENERATION, VIDEO_CREATION):
            if len(several := [name for name in protocols if name in row.protocols]) > 1:
                problem = f"expected one of {' and '.join(several)}: use a channel for each"
                document.problem((*path, "protocols"), problem)
        own = next((name for name in OWN_PROTOCOLS if name in entry.protocols), None)
        models = tuple(_channel_models(document, (*path, "models"), entry.models))
        _check_keys(document, path, entry, protocols, own)
        if own is not None:
            yield _own_channel(document, path, entry, own, models)
        else:
            made = _http_channel(document, path, entry, protocols, models, directory)
            preset = (
                PROVIDER_PRESETS.get(made.provider) if not only and written is not None and not written.models else None
            )
            yield replace(made, discovery=_discovery(document, path, made, entry.discover, only=only, preset=preset))


def _check_keys(
    document: YamlDocument, path: Path, entry: _ChannelEntry, protocols: tuple[str, ...], own: str | None
) -> None:
    if entry.pace is not None and own != SIMULATED_PROTOCOL:
        document.problem((*path, "pace"), f"expected only of a `{SIMULATED_PROTOCOL}` channel")
    if entry.max_inputs is not None and protocols and not any(map(has_input_limit, protocols)):
        names = [name for name, row in provider_protocols().items() if row.has_input_limit]
        document.problem((*path, "max_inputs"), f"expected only with {any_of(names)}")
    takes = stores_prompts if entry.prompt_caching == "explicit" else has_cache_marks
    if entry.prompt_caching is not None and protocols and not any(map(takes, protocols)):
        names = [name for name in TEXT_PROTOCOLS if takes(name)]
        document.problem((*path, "prompt_caching"), f"expected only with {any_of(names)}")
    if entry.quirks != QuirksEntry() and protocols and TEXT_PROTOCOLS.keys().isdisjoint(protocols):
        document.problem((*path, "quirks"), f"expected only with {any_of(TEXT_PROTOCOLS)}")


def _discovery(
    document: YamlDocument, path: Path, channel: Channel, wanted: bool | None, *, only: bool, preset: Provider | None
) -> Literal["off", "known", "preset", "beside", "only"]:
    """Return which models of the provider's list the channel serves. `wanted`: value of the key `discover`."""
    if wanted is None and preset is not None:
        return "preset" if preset.lists_models and model_list(channel.listing_protocols) is not None else "known"
    if wanted is None and not only:
        has_all = any(model.id == model.upstream == ANY_MODEL for model in channel.models)
        return "beside" if has_all and model_list(channel.listing_protocols) is not None else "off"
    if wanted is False:
        return "off"
    key = (*path, "models" if only else "discover")
    if channel.protocols and model_list(channel.listing_protocols) is None:
        names = [name for name, row in provider_protocols().items() if row.model_list is not None]
        document.problem(key, f"expected one of the protocols {', '.join(names)}, whose providers list their models")
    elif not any("*" in model.id and "*" in model.upstream for model in channel.models):
        document.problem(key, "expected a pattern in `models`, e.g. `*`, for the models of the provider's list")
    return "only" if only else "beside"


def _with_preset(document: YamlDocument, path: Path, entry: _ChannelEntry) -> _ChannelEntry | None:
    if entry.provider is None:
        if entry.account:
            document.problem((*path, "account"), "expected only with `provider`, whose URL has parts of an account")
        for key in ("name", "protocols", "models"):
            if not document.has((*path, key)):
                document.problem(path, f"expected `{key}`, which is missing; `provider` would fill it in")
                return None
        return entry
    preset = PROVIDER_PRESETS.get(entry.provider)
    if preset is None:
        meant = similar(entry.provider, PROVIDER_PRESETS)
        hint = f"did you mean `{meant}`?" if meant else "of others, set `protocols` and `base_url`"
        document.problem((*path, "provider"), f"expected a provider that `umg providers` lists; {hint}")
        return None
    base_url = preset_address(document, path, preset, entry.base_url, entry.account)
    beside = preset.base_urls_beside(base_url) | entry.base_urls
    protocols = entry.protocols or [each for each in preset.protocols if each in beside or each not in preset.base_urls]
    auth = entry.auth or (msgspec.convert(preset.auth, Auth) if preset.auth else None)
    if entry.auth is None and entry.api_key is None:
        auth = cloud_auth(preset, document.variable) or auth
    api_key = entry.api_key or _key_of_environment(document, path, preset, auth)
    return msgspec.structs.replace(
        entry,
        name=entry.name or entry.provider,
        protocols=protocols,
        models=entry.models or [_ModelEntry(model.id, model.upstream, model.family) for model in preset.models],
        base_url=base_url,
        base_urls={name: url for name, url in beside.items() if name in protocols or name in entry.base_urls},
        api_key=api_key,
        auth=auth if api_key or preset.needs_key or preset.uses_service_account else entry.auth,
        max_inputs=entry.max_inputs or (preset.max_inputs if any(map(has_input_limit, protocols)) else None),
        unpriced=preset.unpriced if entry.unpriced is None else entry.unpriced,
    )


def _key_of_environment(document: YamlDocument, path: Path, preset: Provider, auth: Auth | None) -> str | None:
    """Return a reference to the API key in the provider's environment variables; None if the channel needs no key."""
    if isinstance(auth, KEYLESS_AUTH):
        return None
    if (found := preset.key_in(document.variable)) is not None:
        return found[1]
    if preset.needs_key:
        variables = [name.replace(":", " and ") for name in preset.keys]
        other = f", or `auth: {{kind: {preset.cloud}}}`" if preset.cloud else ""
        expected = f"expected a key, here or in the environment as {any_of(variables)}{other}"
        document.problem((*path, "api_key"), expected)
    return None


def _protocols(document: YamlDocument, path: Path, protocols: list[str]) -> tuple[str, ...]:
    """Return the valid protocols among those listed. Report unknown, repeated and incompatible ones."""
    served = tuple(protocol for protocol in protocols if protocol in served_protocols())
    for position, protocol in enumerate(protocols):
        if protocol not in served_protocols():
            document.problem((*path, position), f"expected {any_of(served_protocols())}; {_no_protocol(protocol)}")
        elif protocol in protocols[:position]:
            document.problem((*path, position), f"expected `{protocol}` once")
    own = next((name for name in OWN_PROTOCOLS if name in protocols), None)
    if own is not None and len(protocols) > 1:
        document.problem(path, f"expected `{own}` alone: it is not reached over the network")
    return served


def _no_protocol(written: str) -> str:
    if (provider := written.lower()) in PROVIDER_PRESETS:
        return f"`{written}` is a provider: set `provider: {provider}` in place of `protocols`"
    if (meant := protocol_by_other_name(written) or similar(written, served_protocols())) is not None:
        return f"`{written}` is not a protocol; did you mean `{meant}`?"
    return f"`{written}` is not a protocol"


def _channel_models(document: YamlDocument, path: Path, entries: list[str | _ModelEntry]) -> Iterator[ChannelModel]:
    ids: set[str] = set()
    for position, written in enumerate(entries):
        entry = _ModelEntry(id=written) if isinstance(written, str) else written
        upstream = entry.id if entry.upstream is None else entry.upstream
        model_family = family(document, (*path, position, "family"), entry.family)
        model = ChannelModel(entry.id, upstream, model_family)
        if not (MODEL_PATTERN.fullmatch(model.id) and MODEL_PATTERN.fullmatch(model.upstream)):
            document.problem(
                (*path, position), "expected a model id: up to 256 characters without spaces, at most one of them `*`"
            )
        elif "*" in model.upstream and "*" not in model.id:
            document.problem((*path, position), "expected a `*` in the id too, for the one in `upstream` to stand for")
        elif model.id in ids:
            document.problem((*path, position), f"expected an id of its own in this channel; `{model.id}` is taken")
        ids.add(model.id)
        yield model


def _own_channel(
    document: YamlDocument, path: Path, entry: _ChannelEntry, own: str, models: tuple[ChannelModel, ...]
) -> Channel:
    for key in UPSTREAM_KEYS:
        if getattr(entry, key):
            document.problem((*path, key), f"expected only for an upstream on the network; a `{own}` channel has none")
    return Channel(
        name=entry.name,
        protocols=(own,),
        models=models,
        priority=entry.priority,
        weight=entry.weight,
        weight_place=document.place((*path, "weight")),
        timeout=_timeout(entry.timeout),
        shared_objects=True,
        pace=Channel.pace if entry.pace is None else entry.pace,
        concurrency=entry.concurrency,
        unpriced=unpriced(document, (*path, "unpriced"), entry.unpriced),
        unpriced_place=document.place((*path, "unpriced")),
    )


def _http_channel(
    document: YamlDocument,
    path: Path,
    entry: _ChannelEntry,
    protocols: tuple[str, ...],
    models: tuple[ChannelModel, ...],
    directory: PurePath,
) -> Channel:
    if entry.base_url is None:
        document.problem((*path, "base_url"), "expected a URL, e.g. https://provider.example/v1")
    own = tuple(protocol for protocol in protocols if protocol not in entry.base_urls)
    base_url = base_url_of(document, (*path, "base_url"), entry.base_url, own)
    base_urls = base_urls_of(document, (*path, "base_urls"), entry.base_urls, protocols)
    auth = located(auth_of(entry.auth, entry.api_key), directory)
    check_auth(document, (*path, "auth"), auth, base_url)
    in_formats = [key_header(protocol) for protocol in protocols] if entry.auth is None else []
    check_headers(document, (*path, "headers"), entry.headers, auth, in_formats)
    check_query(document, (*path, "query"), entry.query, auth)
    check_parameters(document, (*path, "query"), base_url, own, entry.query)
    return Channel(
        name=entry.name,
        protocols=protocols,
        models=models,
        provider=entry.provider or "",
        base_url=base_url,
        base_urls=MappingProxyType(base_urls),
        api_keys=api_keys(document, path, entry.api_key, auth),
        auth=auth,
        has_explicit_auth=entry.auth is not None,
        headers=MappingProxyType(entry.headers),
        query=MappingProxyType(entry.query),
        proxy=_proxy(document, (*path, "proxy"), entry.proxy),
        ca_file=str(directory / entry.ca_file) if entry.ca_file else None,
        priority=entry.priority,
        weight=entry.weight,
        weight_place=document.place((*path, "weight")),
        timeout=_timeout(entry.timeout),
        shared_objects=entry.shared_objects,
        max_inputs=entry.max_inputs,
        quirks=quirks(document, (*path, "quirks"), entry.quirks),
        heal=entry.heal,
        prompt_caching=entry.prompt_caching or Channel.prompt_caching,
        concurrency=entry.concurrency,
        unpriced=unpriced(document, (*path, "unpriced"), entry.unpriced),
        unpriced_place=document.place((*path, "unpriced")),
        price_region=price_region(document, (*path, "price_region"), entry.price_region),
    )


def _proxy(document: YamlDocument, path: Path, written: str | None) -> str | None:
    return written if written in {None, DIRECT_ROUTE} else url(document, path, written, user=True)


def _timeout(written: float | Timeout) -> Timeout:
    return written if isinstance(written, Timeout) else Timeout(first_byte=written)
