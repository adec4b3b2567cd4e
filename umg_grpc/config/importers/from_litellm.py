"""Conversion of a LiteLLM proxy config into a config of this gateway (https://docs.litellm.ai/docs/proxy/configs).
Pure.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from urllib.parse import quote, urlsplit

import yaml

from umg_grpc.config.importers.imported_config import ImportedConfig, compact, literal, mapping, number, sequence
from umg_grpc.knowledge.presets import PROVIDERS
from umg_grpc.operations.provider_call_paths import call_path

VARIABLE = re.compile(r"os\.environ/([A-Za-z_][A-Za-z0-9_]*)")
VERSION = re.compile(r"/v[0-9]+(?:beta[0-9]*)?(?:/|$)")
PRESETS: Mapping[str, str] = {
    **{name: name for name in PROVIDERS},
    "cohere_chat": "cohere",
    "fireworks_ai": "fireworks",
    "hosted_vllm": "vllm",
    "jina_ai": "jina",
    "lm_studio": "lmstudio",
    "llamafile": "llama.cpp",
    "ollama_chat": "ollama",
    "text-completion-openai": "openai",
    "together_ai": "together",
    "vertex_ai": "vertex",
    "vertex_ai_beta": "vertex",
    "volcengine": "ark",
}
"""Prefix of a model -> preset."""
ADDRESSES: Mapping[str, tuple[str, str]] = {
    "deepinfra": ("https://api.deepinfra.com/v1/openai", "DEEPINFRA_API_KEY"),
    "github": ("https://models.github.ai/inference", "GITHUB_API_KEY"),
    "huggingface": ("https://router.huggingface.co/v1", "HUGGINGFACE_API_KEY"),
    "nvidia_nim": ("https://integrate.api.nvidia.com/v1", "NVIDIA_NIM_API_KEY"),
    "perplexity": ("https://api.perplexity.ai", "PERPLEXITYAI_API_KEY"),
    "sambanova": ("https://api.sambanova.ai/v1", "SAMBANOVA_API_KEY"),
}
"""Prefix of a model without a preset -> address of its chat completions, and variable of the key."""
ANTHROPIC_NAMES, GEMINI_NAMES = re.compile(r"claude-"), re.compile(r"gemini-")
MODES: Mapping[str, tuple[str, ...]] = {
    "chat": ("chat",),
    "completion": ("chat",),
    "responses": ("responses",),
    "embedding": ("embeddings",),
    "image_generation": ("images",),
    "rerank": ("rerank",),
    "video_generation": ("vidA",),
}
"""`mode` of a model -> protocols of a channel without a preset."""
UNSERVED_MODES = frozenset({"audio_speech", "audio_transcription", "moderation", "realtime", "batch"})
KNOWN_PARAMS = frozenset(
    {
        *("model", "api_key", "api_base", "base_url", "api_version", "rpm", "tpm", "timeout", "stream_timeout"),
        *(
            "max_parallel_requests",
            "weight",
            "order",
            "extra_headers",
            "headers",
            "organization",
            "custom_llm_provider",
        ),
        *("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "aws_region_name"),
        *("vertex_project", "vertex_location", "vertex_credentials", "input_cost_per_token", "output_cost_per_token"),
        "drop_params",
    }
)
KNOWN_INFO = frozenset({"id", "mode", "base_model", "input_cost_per_token", "output_cost_per_token", "db_model"})
LIMITS = {"max_input_tokens": "input_tokens", "max_output_tokens": "output_tokens", "max_tokens": "output_tokens"}
CAPABILITIES = {
    "supports_function_calling": "tools",
    "supports_parallel_function_calling": "parallel_tools",
    "supports_response_schema": "structured_output",
    "supports_web_search": "search",
}
FALLBACK_PRIORITY = 10
DEFAULTS = frozenset({"drop_params", "set_verbose", "json_logs", "modify_params"})
"""Settings whose effect is the default here, or that concern only the other program."""


@dataclass(frozen=True)
class Deployment:
    """Provider's side of an entry of LiteLLM's `model_list`: the preset, the provider's model id, and the channel's
    other keys.
    """

    provider: str
    model: str
    keys: dict[str, object]
    comment: str = ""


def from_litellm(text: str) -> ImportedConfig:
    """Convert the text of a LiteLLM config. Raise ValueError if it is no YAML or has no `model_list`."""
    try:
        decoded = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(f"expected YAML: {' '.join(str(error).split())}") from None
    written = mapping(decoded)
    if not isinstance(written.get("model_list"), list):
        raise ValueError("expected a config of LiteLLM, with a list under `model_list`")
    made = ImportedConfig("LiteLLM")
    infos: dict[str, dict[str, object]] = {}
    limits: dict[str, list[tuple[float | None, float | None]]] = {}
    for entry in map(mapping, sequence(written["model_list"])):
        _add(made, entry, infos, limits, mapping(written.get("litellm_settings")))
    for name, rates in limits.items():
        totals = {key: [pair[index] for pair in rates] for index, key in enumerate(("rpm", "tpm"))}
        known = {key: int(sum(filter(None, each))) for key, each in totals.items() if all(each)}
        if known:
            infos.setdefault(name, {})["limits"] = known
    _settings(made, written)
    served = {model["id"] for channel in made.channels for model in channel.models}
    if models := {name: info for name, info in infos.items() if info and name in served and "*" not in name}:
        made.sections["models"] = models
    for key in written.keys() - {"model_list", "litellm_settings", "router_settings", "general_settings"}:
        remedy = "set these variables for the process" if key == "environment_variables" else ""
        made.lose(key, remedy)
    return made


def _add(
    made: ImportedConfig,
    entry: Mapping[str, object],
    infos: dict[str, dict[str, object]],
    limits: dict[str, list[tuple[float | None, float | None]]],
    settings: Mapping[str, object],
) -> None:
    """Add one entry of LiteLLM's `model_list` to the converted config `made`: its channel and model.

    `infos`: properties by model id, to which those of the entry are added; `limits`: for each model the pairs of
    requests and tokens per minute of its entries; `settings`: LiteLLM's settings for all entries.
    """
    params, info = mapping(entry.get("litellm_params")), mapping(entry.get("model_info"))
    public, mode = str(entry.get("model_name", "")), str(info.get("mode", "chat"))
    if not public or not isinstance(params.get("model"), str):
        made.lose("model_list: an entry without `model_name` or `litellm_params.model`")
        return
    if mode in UNSERVED_MODES:
        made.lose(f"model `{public}` of mode {mode}", "this gateway does not serve it")
        return
    found = _deployment(params, mode)
    if isinstance(found, str):
        made.lose(f"model `{public}`", found)
        return
    for key, name in (("timeout", "total"), ("stream_timeout", "first_byte")):
        seconds = number(params.get(key, settings.get("request_timeout") if key == "timeout" else None))
        if seconds:
            timeout = mapping(found.keys.get("timeout"))
            found.keys["timeout"] = {**timeout, name: compact(seconds)}
    for key, name in (("max_parallel_requests", "concurrency"), ("weight", "weight"), ("order", "priority")):
        if (value := number(params.get(key))) is not None:
            found.keys[name] = int(value)
    channel = next((each for each in made.channels if each.keys == found.keys and each.add(public, found.model)), None)
    if channel is None:
        channel = made.new_channel(found.provider, found.keys)
        channel.add(public, found.model)
    if found.comment and found.comment not in channel.comments:
        channel.comments.append(found.comment)
    limits.setdefault(public, []).append((number(params.get("rpm", entry.get("rpm"))), number(params.get("tpm"))))
    _describe(infos.setdefault(public, {}), {**info, **params})
    for key in params.keys() - KNOWN_PARAMS:
        made.lose(f"litellm_params.{key} of `{public}`", "callers send it in their requests")
    for key in info.keys() - KNOWN_INFO - LIMITS.keys() - CAPABILITIES.keys():
        made.lose(f"model_info.{key} of `{public}`")


def _describe(info: dict[str, object], written: Mapping[str, object]) -> None:
    """Add the price, limits and capabilities in an entry to `info`, the properties of its model."""
    price = {
        name: str(Decimal(str(cost)) * 1_000_000)
        for name, key in (("input", "input_cost_per_token"), ("output", "output_cost_per_token"))
        if (cost := number(written.get(key))) is not None
    }
    if price:
        info["price"] = {name: f"{Decimal(cost):.6f}".rstrip("0").rstrip(".") for name, cost in price.items()}
    can: dict[str, object] = {name: int(count) for key, name in LIMITS.items() if (count := number(written.get(key)))}
    can |= {name: True for key, name in CAPABILITIES.items() if written.get(key) is True}
    if written.get("supports_vision") is True:
        can["inputs"] = ["image"]
    if can:
        info["capabilities"] = can


def _deployment(params: Mapping[str, object], mode: str) -> Deployment | str:
    """Return the provider's side of an entry with these parameters, or the reason (a text) why this gateway has no
    counterpart.

    `mode`: kind of the model in LiteLLM's terms, for example `embedding`.
    """
    written, base = str(params["model"]), _text(params.get("api_base", params.get("base_url")))
    prefix, slash, rest = written.partition("/")
    provider = str(params.get("custom_llm_provider", "")) or (prefix if slash else "")
    if provider in {"custom_openai", "openai_like", "azure_ai", "litellm_proxy"}:
        provider = "openai" if base else provider
    if provider not in PRESETS and provider not in ADDRESSES:
        provider, rest = _guessed(written, base), written
    if provider in PRESETS and PRESETS[provider] in {"azure", "bedrock", "vertex"}:
        return _cloud(PRESETS[provider], rest, params, base)
    headers = {**mapping(params.get("extra_headers")), **mapping(params.get("headers"))}
    key = _text(params.get("api_key"))
    keys: dict[str, object] = {}
    if provider in ADDRESSES or (provider == "openai" and base):
        address, variable = ADDRESSES.get(provider, ("", ""))
        keys |= {"protocols": list(MODES.get(mode, ("chat",))), "base_url": _base_url(base or address, "chat")}
        key = key or (f"${{{variable}}}" if variable else "")
    elif provider in PRESETS:
        preset = PRESETS[provider]
        keys["provider"] = preset
        if base:
            protocol = PROVIDERS[preset].protocols[0]
            needs_version = VERSION.search(f"{urlsplit(base).path}/") is None
            version = re.search(VERSION, f"{urlsplit(PROVIDERS[preset].base_url).path}/")
            keys["base_url"] = _base_url(base, protocol) + (version[0].rstrip("/") if needs_version and version else "")
    else:
        return f"`{written}` names no provider that is known here; write a channel with `protocols` and `base_url`"
    if key:
        keys["api_key"] = key
    if organization := _text(params.get("organization")):
        headers["OpenAI-Organization"] = organization
    if headers:
        keys["headers"] = {name: _text(value) for name, value in headers.items()}
    return Deployment(provider or "openai", rest if slash or provider else written, keys)


def _guessed(model: str, base: str) -> str:
    """Return the preset for a model id without a known prefix: by the id or, if an address `base` is configured,
    `openai`, with which it is probably compatible.

    "" if neither decides.
    """
    if ANTHROPIC_NAMES.match(model):
        return "anthropic"
    if GEMINI_NAMES.match(model):
        return "gemini"
    is_of_openai = any(
        re.fullmatch(re.escape(each.id).replace(r"\*", ".*"), model) for each in PROVIDERS["openai"].models
    )
    return "openai" if base or is_of_openai or model == "*" else ""


def _cloud(preset: str, model: str, params: Mapping[str, object], base: str) -> Deployment | str:
    """Return the deployment of a model at a cloud vendor, whose address depends on the account, or the reason (a text)
    why it cannot be converted.
    """
    keys: dict[str, object] = {"provider": preset}
    if preset == "azure":
        if not base:
            base, comment = "https://<resource>.openai.azure.com", "replace <resource> in base_url"
        else:
            comment = "the address /openai/v1 needs no api_version" if params.get("api_version") else ""
        parts = urlsplit(base)
        host = f"{parts.scheme}://{parts.netloc}" if parts.netloc else base.rstrip("/")
        keys["base_url"] = f"{host}/openai/v1"
        if key := _text(params.get("api_key")):
            keys["api_key"] = key
        return Deployment("azure", model, keys, comment)
    if preset == "bedrock":
        name = re.sub(r"^(?:converse|invoke|converse_like)/", "", model)
        is_claude = re.match(r"(?:[a-z]+\.)?anthropic\.", name) is not None
        keys["provider"] = "bedrock-anthropic" if is_claude else "bedrock"
        region = _text(params.get("aws_region_name")) or "${AWS_REGION}"
        keys["base_url"] = PROVIDERS[str(keys["provider"])].base_url.replace("<region>", region)
        names = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
        pair = [_text(params.get(name)) for name in names if params.get(name)]
        if pair:
            keys |= {"auth": {"kind": "access_key", "scheme": "aws"}, "api_key": ":".join(pair)}
        comment = "" if is_claude else "this address serves only the models with an OpenAI-compatible API"
        return Deployment("bedrock", name, keys, comment)
    if model.startswith(("claude", "meta/", "mistral")):
        return "models of other vendors at Vertex AI are not served; call the vendor itself"
    project, region = (
        _text(params.get(key)) or default
        for key, default in (("vertex_project", "${GOOGLE_CLOUD_PROJECT}"), ("vertex_location", "us-central1"))
    )
    keys["base_url"] = PROVIDERS["vertex"].base_url.replace("<region>", region).replace("<project>", project)
    credentials = _text(params.get("vertex_credentials"))
    if credentials and not credentials.startswith("{"):
        keys["auth"] = {"kind": "service_account", "file": credentials}
    return Deployment("vertex", model, keys)


def _base_url(written: str, protocol: str) -> str:
    """Return the base URL without the path of a call by the protocol, which LiteLLM accepts at its end."""
    base = written.rstrip("/")
    added = call_path(protocol, base)
    return base.removesuffix(added) if added is not None else base


def _text(value: object) -> str:
    """Return a value as text, with `os.environ/NAME` changed to `${NAME}`; "" for no value."""
    if value is None:
        return ""
    text = str(value)
    if (match := VARIABLE.fullmatch(text)) is not None:
        return f"${{{match[1]}}}"
    return literal(text)


def _settings(made: ImportedConfig, written: Mapping[str, object]) -> None:
    """Convert the settings of LiteLLM's proxy and router in `written`, and record in `made` the ones without a
    counterpart.
    """
    settings, router, general = (
        dict(mapping(written.get(key))) for key in ("litellm_settings", "router_settings", "general_settings")
    )
    fallbacks = [*sequence(router.pop("fallbacks", None)), *sequence(settings.pop("fallbacks", None))]
    for pair in map(mapping, fallbacks):
        for name, others in pair.items():
            _fall_back(made, name, [str(other) for other in sequence(others)])
    retries = number(router.pop("num_retries", settings.pop("num_retries", None)))
    if retries is not None:
        made.sections["retries"] = {"repeats": int(retries)}
    fails, rest = (number(router.pop(key, settings.pop(key, None))) for key in ("allowed_fails", "cooldown_time"))
    breaker = {"failures": max(int(fails), 1)} if fails is not None else {}
    if breaker or rest:
        made.sections["breaker"] = {**breaker, **({"rest": compact(rest)} if rest else {})}
    if host := _text(router.pop("redis_host", None)):
        port, password = _text(router.pop("redis_port", 6379)), _text(router.pop("redis_password", None))
        secret = f":{password if password.startswith('${') else quote(password, safe='')}@" if password else ""
        made.sections["redis"] = f"redis://{secret}{host}:{port}"
    aliases = mapping(router.pop("model_group_alias", None))
    if aliases:
        made.sections["aliases"] = {
            name: str(mapping(value).get("model", value) if isinstance(value, dict) else value)
            for name, value in aliases.items()
        }
    for key in ("num_retries", "request_timeout", *DEFAULTS):
        settings.pop(key, None)
    if general.pop("master_key", None) is not None:
        made.lose("general_settings.master_key", "set UMG_API_KEY, or make keys by `umg keys create`")
    for section, left in (("litellm_settings", settings), ("router_settings", router), ("general_settings", general)):
        for key in left:
            made.lose(f"{section}.{key}", REMEDIES.get(key, ""))


REMEDIES: Mapping[str, str] = {
    "routing_strategy": "channels share by `priority` and `weight`, and failing ones are left out",
    "context_window_fallbacks": "a channel of a lower priority takes a call that is too long",
    "success_callback": "telemetry is exported by OpenTelemetry, metrics at /metrics",
    "failure_callback": "telemetry is exported by OpenTelemetry, metrics at /metrics",
    "callbacks": "telemetry is exported by OpenTelemetry, metrics at /metrics",
    "cache": "set `cache` of a model",
    "cache_params": "set `cache` of a model, and `redis`",
    "database_url": "set `database` to a database of this gateway's own",
    "timeout": "set `timeout` of the channels",
}


def _fall_back(made: ImportedConfig, name: str, others: list[str]) -> None:
    """Add channels for the model `name` that serve it by its fallback models `others`, each with a lower priority than
    the previous one.
    """
    for position, other in enumerate(others):
        sources = [
            (channel, model.get("upstream", other))
            for channel in made.channels
            for model in channel.models
            if model["id"] == other and "fallback" not in channel.name
        ]
        if not sources:
            made.lose(f"fallback of `{name}` to `{other}`", "no entry of model_list has this name")
        for source, upstream in sources:
            keys = {**source.keys, "priority": FALLBACK_PRIORITY + position}
            same = next((each for each in made.channels if each.keys == keys and each.add(name, upstream)), None)
            if same is None:
                made.new_channel(f"{source.name}-fallback", keys).add(name, upstream)
