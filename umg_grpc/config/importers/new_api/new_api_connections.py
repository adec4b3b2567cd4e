"""Connections of new-api's channels: the keys, with address and credentials, of a channel that calls a model."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from umg_grpc.config.importers.bedrock_arns import IMPORTED_ID, bedrock_resource
from umg_grpc.config.importers.config_text_builder import literal, mapping
from umg_grpc.config.importers.new_api.channel_types import ChannelType, bedrock_id, vertex_id
from umg_grpc.config.importers.new_api.listed_new_api_channels import SourceRow, json_of
from umg_grpc.config.importers.new_api.new_api_channel_keys import ProviderKeys, provider_keys
from umg_grpc.config.importers.unserved_models import (
    IMPORTED_MODEL,
    PROFILE_ADVICE,
    RESULT_PHRASES,
    VERTEX_KEYS,
    VERTEX_MAKERS,
    unserved_at_bedrock,
)
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS, Provider
from umg_grpc.operations import OPERATIONS_BY_VALUE, SCOPE_OPERATIONS, ModelOperation
from umg_grpc.operations.provider_call_paths import call_path

ANY_MODEL_FORMATS = frozenset({"images", "vidA"})
"""Image and video formats in which servers offer models of many makers."""
OWN_FORMATS = frozenset(
    name
    for scope in ("images", "videos")
    for value in SCOPE_OPERATIONS[scope]
    for name in OPERATIONS_BY_VALUE[value].protocols
).difference(ANY_MODEL_FORMATS)
"""Image and video formats that belong to a single vendor."""
ANY_MODEL_PROTOCOL = "converse"
"""Bedrock's protocol that calls models of all makers, also by an ARN that does not show the maker."""
DEFAULT_LOCATION = "global"
"""Location at Vertex AI of a channel that states none."""
DOTLESS_UNTIL = 1_746_835_200
"""10 May 2025 as a Unix time. For Azure channels created earlier new-api removes the dots from deployment names."""


@dataclass(frozen=True)
class RowConnection:
    """Keys of the channel by which one model is called, besides the properties of the whole new-api channel."""

    label: str
    """Word that distinguishes the channel from other channels made of the same new-api channel."""
    keys: dict[str, object]
    model: str
    """Id at the provider."""
    family: str = ""
    preset: Provider | None = None
    """Preset that has the address, and that reads the key from its environment variable."""


@dataclass(frozen=True)
class Source:
    """Channel of new-api with its address and keys."""

    row: SourceRow
    type: ChannelType
    keys: ProviderKeys
    address: str
    """Configured address without the path of the API; "" if there is none."""
    other: str
    """Column `other`: the region, version or account that some types need."""
    created: float
    """Creation time as a Unix time in seconds."""


def source_of(row: SourceRow, known: ChannelType) -> Source:
    """Take the address and the keys of a channel."""
    address = literal(row.text("base_url").rstrip("/"))
    for path in sorted(filter(None, known.paths.values()), key=len, reverse=True):
        address = address.removesuffix(path)
    other, created = "", 0.0
    if known.kind in {"cloudflare", "vertex"}:
        other = row.text("other")
    if known.kind == "azure":
        created = row.columns.number("created_time") or 0
        if version := row.text("other"):
            row.lose(f"other ({version})", "the address `/openai/v1` needs no version of the API")
    return Source(row, known, provider_keys(row, known.kind), address, other, created)


def connection(source: Source, model: str, operations: Iterable[ModelOperation]) -> RowConnection | str:
    """Return a channel's connection for a model (provider's id), or the reason (a text) why there is none."""
    match source.type.kind:
        case "aws":
            return _bedrock(source, model, operations)
        case "vertex":
            return _vertex(source, model, operations)
        case "azure":
            return _azure(source, model, operations)
        case "custom":
            return _custom(source, model, operations)
        case _:  # all others have an address of the provider or one that is configured
            return _plain(source, model, operations)


def _plain(source: Source, model: str, operations: Iterable[ModelOperation]) -> RowConnection | str:
    known, address = source.type, source.address
    if address in known.plans:
        return _compatible(source, known.plans[address], model, operations)
    own = {"", known.base_url, known.present}
    names = known.presets if address in own and not known.needs_base_url else known.platforms.get(address, ())
    for preset in (PROVIDER_PRESETS[name] for name in names if name in PROVIDER_PRESETS):
        if _serves(preset.protocols, (preset,), model, operations):
            return _at_preset(source, preset, model)
    base = (known.present or known.base_url) if address in own else address
    if not base:
        return "`base_url` is missing: this type has no address of its own"
    addresses = {name: base + _of_account(source, path) for name, path in known.paths.items()}
    for preset in PROVIDER_PRESETS.values():
        is_here = preset.needs_key and addresses.get(preset.protocols[0]) == preset.base_url
        if is_here and _serves(preset.protocols, (preset,), model, operations):
            return _at_preset(source, preset, model)
    return _compatible(source, addresses, model, operations)


def _at_preset(source: Source, preset: Provider, model: str) -> RowConnection:
    keys: dict[str, object] = {"provider": preset.name}
    if not preset.is_complete:
        keys["base_url"] = _of_account(source, preset.base_url)
    return RowConnection(preset.name, keys, model, _family((preset,), model), preset)


def _of_account(source: Source, url: str) -> str:
    return url.replace("<account>", literal(source.other) or "${CLOUDFLARE_ACCOUNT_ID}")


def _compatible(
    source: Source, addresses: Mapping[str, str], model: str, operations: Iterable[ModelOperation]
) -> RowConnection | str:
    """Return the connection to addresses (by protocol) that no preset has, or the reason (a text) why there is none."""
    presets = tuple(PROVIDER_PRESETS.values())
    protocols = _serves(addresses, presets, model, operations)
    if not protocols:
        return _unserved(source.type.name, addresses, operations)
    first = addresses[protocols[0]]
    keys: dict[str, object] = {"protocols": protocols, "base_url": first}
    if others := {name: addresses[name] for name in protocols if addresses[name] != first}:
        keys["base_urls"] = others
    known = [PROVIDER_PRESETS[name] for name in source.type.presets if name in PROVIDER_PRESETS]
    if auth := source.type.auth or next((each.auth for each in known if each.auth), None):
        keys["auth"] = dict(auth)
    return RowConnection(
        protocols[0], keys, model, _family([each for each in presets if protocols[0] in each.protocols], model)
    )


def _azure(source: Source, model: str, operations: Iterable[ModelOperation]) -> RowConnection | str:
    if not source.address:
        return "`base_url` is missing: the address of a resource at Azure"
    preset = PROVIDER_PRESETS["azure"]
    if not _serves(preset.protocols, (preset,), model, operations):
        return _unserved(source.type.name, preset.protocols, operations)
    deployment = model.replace(".", "") if 0 < source.created < DOTLESS_UNTIL else model
    keys: dict[str, object] = {"provider": preset.name, "base_url": f"{source.address}/openai/v1"}
    return RowConnection(preset.name, keys, deployment, preset=preset)


def _custom(source: Source, model: str, operations: Iterable[ModelOperation]) -> RowConnection | str:
    """Return the connection to an address that ends in the path of a call, since new-api calls it unchanged."""
    if not source.address:
        return "`base_url` is missing: the address of each call"
    if "{model}" in source.address:
        return "the model is part of its address"
    paths = {name: call_path(name, source.address) for name in source.type.paths}
    addresses = {name: source.address.removesuffix(path) for name, path in paths.items() if path}
    if not addresses:
        return "its address does not end in the path of a call, for example /chat/completions"
    return _compatible(source, addresses, model, operations)


def _bedrock(source: Source, model: str, operations: Iterable[ModelOperation]) -> RowConnection | str:
    region = source.keys.region
    resource = bedrock_resource(bedrock_id(model, region.partition("-")[0]))
    if resource.kind == IMPORTED_ID:
        return IMPORTED_MODEL
    for preset in (PROVIDER_PRESETS[name] for name in source.type.presets):
        is_known = ANY_MODEL_PROTOCOL in preset.protocols if resource.is_nameless else preset.has_model(resource.model)
        if is_known and _serves(preset.protocols, (preset,), resource.model, operations):
            keys: dict[str, object] = {
                "provider": preset.name,
                "base_url": preset.address(literal(region) or resource.region or "${AWS_REGION}"),
            }
            return RowConnection(preset.name, keys, resource.model, preset=preset)
    return PROFILE_ADVICE if resource.is_nameless else unserved_at_bedrock(resource.model)


def _vertex(source: Source, model: str, operations: Iterable[ModelOperation]) -> RowConnection | str:
    presets = [PROVIDER_PRESETS[name] for name in source.type.presets]
    named = vertex_id(model)
    preset = next((each for each in presets if each.has_model(named)), None)
    if preset is None:
        return VERTEX_MAKERS
    if not _serves(preset.protocols, (preset,), named, operations):
        return _unserved(source.type.name, preset.protocols, operations)
    if source.keys.auth is not None and preset is not presets[0]:
        return VERTEX_KEYS
    locations = json_of(source.other)
    if isinstance(locations, dict):
        by_model = mapping(locations)
        location = str(by_model.get(model) or by_model.get("default") or DEFAULT_LOCATION)
    else:
        location = source.other or DEFAULT_LOCATION
    project = source.keys.project or "${GOOGLE_CLOUD_PROJECT}"
    address = preset.address(literal(location), project=project)
    if source.keys.auth is not None:  # API keys belong to a project
        address = address.partition("/projects/")[0] + "/publishers/google"
    if source.address:
        address = source.address + address.partition("/v1")[2]
    label = location if preset is presets[0] else f"{preset.name.removeprefix('vertex-')}-{location}"
    return RowConnection(
        label, {"provider": preset.name, "base_url": address}, named, _family((preset,), named), preset
    )


def _serves(
    protocols: Iterable[str], presets: Iterable[Provider], model: str, operations: Iterable[ModelOperation]
) -> list[str]:
    """Return the protocols in which a model can be called for one of the operations. Image and video formats of a
    single vendor count only if a preset with the format has a pattern for the model.
    """
    return [
        name
        for name in protocols
        if any(name in OPERATIONS_BY_VALUE[value].protocols for value in operations)
        and (name not in OWN_FORMATS or any(name in each.protocols and each.has_model(model) for each in presets))
    ]


def _family(presets: Iterable[Provider], model: str) -> str:
    patterns = (each for preset in presets for each in preset.models)
    return next((each.family for each in patterns if each.family and each.matches(model)), "")


def _unserved(name: str, protocols: Iterable[str], operations: Iterable[ModelOperation]) -> str:
    scope = OPERATIONS_BY_VALUE[min(operations)].scope
    has_format = any(protocol in OPERATIONS_BY_VALUE[value].protocols for protocol in protocols for value in operations)
    return f"`{name}` serves no {RESULT_PHRASES[scope]}{' of this model' if has_format else ''} here"
