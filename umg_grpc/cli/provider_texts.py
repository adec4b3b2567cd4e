"""Texts that `umg providers` prints about the provider presets."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from umg_grpc.cli.text_tables import Column, Fit, Form, print_table
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS, Kind, Provider

PROVIDER_COLUMNS = (
    Column("provider"),
    Column("kind", 2),
    Column("key", fit=Fit.FOLDED),
    Column("protocols", fit=Fit.LISTED),
)
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
"""Kind of a provider -> title of its providers."""


def print_providers(providers: Iterable[Provider], form: Form) -> None:
    """Print a table of providers by kind: name, first environment variable of the key, protocols."""
    presets = sorted(providers, key=lambda preset: [*KIND_TITLES].index(preset.kind))
    rows = (
        (preset.name, KIND_TITLES[preset.kind], _first_variable(preset), ", ".join(preset.protocols))
        for preset in presets
    )
    print_table(PROVIDER_COLUMNS, rows, form, map(_record, presets))


def _first_variable(preset: Provider) -> str:
    return _credentials(preset).partition(" or ")[0].removesuffix(",")


def _record(preset: Provider) -> Mapping[str, object]:
    values = {"provider": preset.name, "kind": preset.kind, "title": preset.title, "key": _first_variable(preset)}
    return {**values, "protocols": [*preset.protocols], "base_url": preset.base_url}


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
