"""Texts that `umg providers` prints about the provider presets."""

from collections.abc import Iterator, Mapping
from textwrap import fill
from types import MappingProxyType

from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS, Kind, Provider

TEXT_WIDTH = 80
KIND_TITLES: Mapping[Kind, str] = MappingProxyType(
    {
        "maker": "Makers of models",
        "cloud": "Clouds",
        "host": "Hosts of models of many makers",
        "vectors": "Embeddings and rankings",
        "media": "Images and videos",
        "local": "Servers of your own",
    }
)
"""Kind of a provider -> heading of its providers."""


def table() -> str:
    """Return a text table of all providers by kind: name, first environment variable of the key, protocols."""
    return "\n\n".join("\n".join((title, *_rows(kind))) for kind, title in KIND_TITLES.items())


def _rows(kind: Kind) -> Iterator[str]:
    """Yield the lines of the providers of a kind, whose protocols continue below each other."""
    presets = [preset for preset in PROVIDER_PRESETS.values() if preset.kind == kind]
    keys = [_credentials(preset).partition(" or ")[0].removesuffix(",") for preset in presets]
    name_width, key_width = max(len(preset.name) for preset in presets), max(map(len, keys))
    for preset, key in zip(presets, keys, strict=True):
        head = f"  {preset.name:{name_width}}  {key:{key_width}}  "
        indent = " " * len(head)
        yield fill(", ".join(preset.protocols), TEXT_WIDTH, initial_indent=head, subsequent_indent=indent)


def details(name: str) -> str:
    """Return a provider's preset as YAML, as a channel of a config. Raise KeyError for an unknown one."""
    preset = PROVIDER_PRESETS[name]
    lines = [
        f"# {preset.title}: {preset.source}",
        *([f"# shut down on {preset.retired}; use {preset.instead}"] if preset.retired else []),
        f"name: {name}",
        f"protocols: [{', '.join(preset.protocols)}]",
        f"base_url: {preset.base_url}",
        *([f"base_urls: {{{_flow(preset.base_urls)}}}"] if preset.base_urls else []),
        f"api_key: # {_credentials(preset)}",
        *([f"auth: {{{_flow(preset.auth)}}}"] if preset.auth is not None else []),
        "models:",
        *(_model(model.id, model.upstream, model.family) for model in preset.models),
    ]
    if preset.max_inputs is not None:
        lines.append(f"max_inputs: {preset.max_inputs}")
    return "\n".join(lines)


def _credentials(preset: Provider) -> str:
    variables = preset.variables_text
    is_required = preset.needs_key or preset.uses_service_account
    return variables if is_required else f"{variables}, or none".removeprefix(", or ")


def _flow(auth: Mapping[str, str]) -> str:
    return ", ".join(f"{key}: {value}" for key, value in auth.items())


def _model(public: str, upstream: str, family: str | None) -> str:
    values = (
        {"id": public} | ({"upstream": upstream} if upstream != public else {}) | ({"family": family} if family else {})
    )
    return "  - {" + ", ".join(f'{key}: "{value}"' for key, value in values.items()) + "}"
