"""Texts of `umg providers`."""

from umg_grpc.providers import PROVIDERS, SERVICE_ACCOUNT_FILE, Provider


def table() -> str:
    """Return a line for each provider: name, variables of the key, protocols."""
    rows = [(name, _credentials(preset), ", ".join(preset.protocols)) for name, preset in PROVIDERS.items()]
    name, key = (max(len(row[column]) for row in rows) for column in (0, 1))
    return "\n".join(f"{row[0]:{name}}  {row[1]:{key}}  {row[2]}" for row in rows)


def details(name: str) -> str:
    """Return all values of a preset, as the channel that it stands for."""
    preset = PROVIDERS[name]
    lines = [
        f"# {preset.title}: {preset.docs}",
        f"name: {name}",
        f"protocols: [{', '.join(preset.protocols)}]",
        f"base_url: {preset.base_url}",
        f"api_key: # {_credentials(preset)}",
        "models:",
        *(_model(model.id, model.upstream, model.family) for model in preset.models),
    ]
    if preset.auth is not None:
        lines.insert(5, f"auth: {{{_auth(preset)}}}")
    if preset.max_inputs is not None:
        lines.append(f"max_inputs: {preset.max_inputs}")
    return "\n".join(lines)


def _credentials(preset: Provider) -> str:
    if preset.uses_service_account:
        return SERVICE_ACCOUNT_FILE
    variables = " or ".join(preset.keys)
    return variables if preset.needs_key else f"{variables}, or none".removeprefix(", or ")


def _auth(preset: Provider) -> str:
    kind = f"kind: {preset.auth.__struct_config__.tag}" if preset.auth is not None else ""
    header = getattr(preset.auth, "header", None)
    return f"{kind}, header: {header}" if header else kind


def _model(public: str, upstream: str, family: str | None) -> str:
    values = (
        {"id": public} | ({"upstream": upstream} if upstream != public else {}) | ({"family": family} if family else {})
    )
    return "  - {" + ", ".join(f'{key}: "{value}"' for key, value in values.items()) + "}"
