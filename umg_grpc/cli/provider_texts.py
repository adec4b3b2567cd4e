"""Texts that `umg providers` prints about the provider presets."""

from collections.abc import Mapping

from umg_grpc.knowledge.presets import PROVIDERS, Provider


def table() -> str:
    """Return a text table of all providers: name, environment variables of the key, protocols."""
    rows = [(name, _credentials(preset), ", ".join(preset.protocols)) for name, preset in PROVIDERS.items()]
    name, key = (max(len(row[column]) for row in rows) for column in (0, 1))
    return "\n".join(f"{row[0]:{name}}  {row[1]:{key}}  {row[2]}" for row in rows)


def details(name: str) -> str:
    """Return a provider's preset as YAML: the channel of a config that the preset stands for. Raise KeyError for an
    unknown name.
    """
    preset = PROVIDERS[name]
    lines = [
        f"# {preset.title}: {preset.source}",
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
