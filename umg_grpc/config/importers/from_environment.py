"""Config from environment variables, as text: a channel for each provider whose API key is set. Pure."""

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from umg_grpc.config.built_in_config import LOCAL_CHANNEL
from umg_grpc.config.config_values import Config
from umg_grpc.knowledge.cloud_credentials import shown_by
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS, SERVICE_ACCOUNT_FILE, Provider

FILE_HEAD = """\
# Providers of the gateway. Check this file with `umg check FILE`, and serve it with `umg serve --config FILE`.
# All keys of the file, with their defaults: docs/operating.md; all providers: `umg providers`.
channels:
"""
OTHERS_COMMENT = "  # Other providers: remove the # of a line, and set the variable that it names.\n"
LOCAL_SECTION = f"""\
  # Models on this machine, which need no key; `protocols: [sandbox]` simulates a provider.
{LOCAL_CHANNEL}"""
OLLAMA_PORT = 11434


@dataclass(frozen=True)
class FoundProvider:
    """Provider whose API key or address is in an environment variable, and the name of the variable."""

    name: str
    variable: str
    """Environment variable that shows the provider to be used: the one with its key or its address."""
    base_url: str | None
    """Address from the environment; None to use the address of the preset."""


def found_providers(environment: Mapping[str, str], clouds: Collection[str] = ()) -> list[FoundProvider]:
    """Return the providers for which the environment variables suffice, in the order of the presets. `clouds`: kinds of
    `auth` whose library is installed and can find credentials.
    """
    found = list[FoundProvider]()
    for name, preset in PROVIDER_PRESETS.items():
        variable = _variable(name, preset, environment, clouds)
        if variable is None:
            continue
        base_url = _base_url(name, environment)
        if preset.is_complete or base_url is not None:
            found.append(FoundProvider(name, variable, base_url))
    return found


def unused_providers(config: Config, environment: Mapping[str, str]) -> list[FoundProvider]:
    """Return the providers in the environment, to be shown as unused, if the config calls none on the network."""
    if any(channel.base_url for channel in config.channels):
        return []
    return found_providers(environment)


def config_text(environment: Mapping[str, str], clouds: Collection[str] = ()) -> str:
    """Return the text of a config with a channel for each provider in the environment; others are comments. Keys are
    referred to by variable. Without any provider the config serves the local models. `clouds`: as for
    `found_providers`.
    """
    found = {provider.name: provider for provider in found_providers(environment, clouds)}
    lines = [FILE_HEAD, *(_channel(provider) for provider in found.values())]
    if not found:
        lines.append(LOCAL_SECTION)
    lines.append(OTHERS_COMMENT)
    lines.extend(_comment(name, preset) for name, preset in PROVIDER_PRESETS.items() if name not in found)
    return "".join(lines)


def _variable(name: str, preset: Provider, environment: Mapping[str, str], clouds: Collection[str]) -> str | None:
    """Return the name of the environment variable by which the provider `name` is used; None if none is set."""
    if not preset.found_by_key:
        return None
    key = preset.key_in(environment.get)
    names = key[0] if key is not None else None
    if names is None and preset.cloud in clouds:
        names = shown_by(preset.cloud, environment.get)
    if names is not None or preset.needs_key:
        return names.replace(":", " and ") if names is not None else None
    variable = SERVICE_ACCOUNT_FILE if preset.uses_service_account else ADDRESS_VARIABLES.get(name, "")
    return variable if environment.get(variable) else None


def _base_url(name: str, environment: Mapping[str, str]) -> str | None:
    if (make := ADDRESS_MAKERS.get(name)) is not None:
        return make(environment)
    parts = {
        part: next(filter(None, map(environment.get, variables)), "")
        for part, variables in ACCOUNT_VARIABLES.get(name, {}).items()
    }
    return PROVIDER_PRESETS[name].address(**parts) if parts and all(parts.values()) else None


def _ollama(environment: Mapping[str, str]) -> str | None:
    match = re.fullmatch(r"(?:(https?)://)?([^:/]*|\[[^\]]*\])(?::(\d+))?/*", environment.get("OLLAMA_HOST", ""))
    if match is None or not match[0]:
        return None
    host = "localhost" if match[2] in {"", "0.0.0.0", "[::]"} else match[2]  # noqa: S104  compared, not bound
    return f"{match[1] or 'http'}://{host}:{match[3] or OLLAMA_PORT}/v1"


def _azure(environment: Mapping[str, str]) -> str | None:
    endpoint = environment.get("AZURE_OPENAI_ENDPOINT", "").rstrip("/")
    return f"{endpoint.removesuffix('/openai/v1')}/openai/v1" if endpoint else None


ADDRESS_MAKERS: Mapping[str, Callable[[Mapping[str, str]], str | None]] = MappingProxyType(
    {"ollama": _ollama, "azure": _azure}
)
"""Provider -> function that returns its address from the variables that the vendor's clients read."""
_AWS = {"region": ("AWS_REGION", "AWS_DEFAULT_REGION")}
ACCOUNT_VARIABLES: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "vertex": {"project": ("GOOGLE_CLOUD_PROJECT",), "region": ("GOOGLE_CLOUD_LOCATION",)},
        "vertex-anthropic": {"project": ("ANTHROPIC_VERTEX_PROJECT_ID",), "region": ("CLOUD_ML_REGION",)},
        **dict.fromkeys(("bedrock", "bedrock-anthropic", "bedrock-converse", "bedrock-vectors"), _AWS),
    }
)
"""Provider -> `<>` part of its base URL -> variables of the vendor's clients; the first one set has the value."""
ADDRESS_VARIABLES: Mapping[str, str] = MappingProxyType({"ollama": "OLLAMA_HOST"})
"""Provider without a key -> variable whose presence shows that it is used."""


def _channel(found: FoundProvider) -> str:
    preset = PROVIDER_PRESETS[found.name]
    models = ", ".join(model.id for model in preset.models)
    lines = [f"  # {preset.title}: {models}", f"  - provider: {found.name}  # {found.variable}"]
    if found.base_url is not None:
        quoted = json.dumps(found.base_url).replace("${", "$${")  # a JSON string is a YAML string
        lines.append(f"    base_url: {quoted}")
    return "\n".join(lines) + "\n"


def _comment(name: str, preset: Provider) -> str:
    keys = f"  # {preset.variables_text}" if preset.variables else ""
    address = "" if preset.is_complete else f", base_url: '{preset.base_url}'"
    value = f"{{provider: {name}{address}}}" if address else f"provider: {name}"
    return f"  # - {value}{keys}\n"
