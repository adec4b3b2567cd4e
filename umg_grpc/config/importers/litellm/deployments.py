"""Deployments of LiteLLM, the entries of its `model_list`: each becomes models of channels, with prices and limits."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from urllib.parse import urlsplit

from umg_grpc.config.importers.config_text_builder import ImportedConfig, compact, model_entry
from umg_grpc.config.importers.litellm.channel_connections import DeploymentConnection, connections
from umg_grpc.config.importers.litellm.channel_names import Label
from umg_grpc.config.importers.litellm.cloud_connections import CLOUD_CONVERTERS
from umg_grpc.config.importers.litellm.model_providers import protocols_of, source_model
from umg_grpc.config.importers.litellm.unconverted_litellm_settings import UnconvertedSettings
from umg_grpc.config.importers.tracked_source_config import SourceMapping
from umg_grpc.knowledge.operations_by_model_id import known_operations
from umg_grpc.knowledge.price_data_packages import DATA_PACKAGES
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS
from umg_grpc.operations import SCOPE_OPERATIONS

LIMIT_KEYS: Mapping[str, str] = {
    "max_input_tokens": "input_tokens",
    "max_output_tokens": "output_tokens",
    "max_tokens": "output_tokens",
}
CAPABILITY_KEYS: Mapping[str, str] = {
    "supports_function_calling": "tools",
    "supports_parallel_function_calling": "parallel_tools",
    "supports_response_schema": "structured_output",
    "supports_web_search": "search",
}
PRICE_KEYS: Mapping[str, str] = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "cache_read_input_token_cost": "cache_read",
    "cache_creation_input_token_cost": "cache_write",
}
DETAIL_KEYS: Mapping[str, str] = {"max_parallel_requests": "concurrency", "weight": "weight", "order": "priority"}
"""Parameter of a deployment -> key of a channel."""
RATE_KEYS = ("rpm", "tpm")
USUAL_OPERATION = "generate"
"""Operation scope assumed for a model about which nothing is known."""
ANY_PROVIDER = "*"
PREFIX_ADVICE = "LiteLLM reads the provider in a prefix of each id: add a pattern of each provider"


@dataclass
class Deployment:
    """Entry of `model_list`: public id of the model, and the mappings that contain its settings."""

    public: str
    entry: SourceMapping
    params: SourceMapping
    info: SourceMapping
    operation: str = ""
    """Operation scope of the model, if neither its ids nor its channels show it."""


@dataclass
class Models:
    """Models of a converted config while it is built."""

    made: ImportedConfig
    unconverted: UnconvertedSettings
    credentials: Mapping[str, Mapping[str, object]]
    """Named credentials to which deployments refer, by name."""
    timeout: float | None
    """Timeout in seconds of a call, for deployments without a timeout."""
    infos: dict[str, dict[str, object]] = field(default_factory=dict)
    """Properties of models by public id."""
    served: dict[str, list[Deployment]] = field(default_factory=dict)
    """Converted deployments by public id."""
    used_credentials: set[str] = field(default_factory=set)
    labels: dict[str, Label] = field(default_factory=dict)
    """Provider and role of each channel, for its name."""
    timeout_used: bool = False
    weight_scale: int = 1
    """Factor of all weights, so that fractions become whole numbers."""

    def add(self, entry: SourceMapping) -> None:
        """Add the models of an entry to channels. An entry that cannot be converted is listed as unconverted."""
        public = entry.text("model_name")
        if not public:
            self.made.lose("model_list: an entry without `model_name`")
            return
        deployment = self._deployment(entry)
        written = str(deployment.params.take("model") or "")
        provider = deployment.params.text("custom_llm_provider")
        found = self._connections(deployment, written, provider)
        if isinstance(found, str):
            self.made.lose(f"model `{public}`" + (f" ({written})" if written != public else ""), found)
            return
        details = self._details(deployment.params)
        if any(_is_shown(deployment.operation, public, each) for each in found):
            deployment.operation = ""
        elif deployment.info.peek("mode"):
            deployment.info.take("mode")
        for each in found:
            self._serve(each, details, each.public or public)
            if each.left:
                self.made.lose(f"further models of `{public}`", each.left)
        self.served.setdefault(public, []).append(deployment)

    def finish(self) -> None:
        """Add the limits and properties of all models, and list the deployment settings that were not converted."""
        for public, deployments in self.served.items():
            if "*" not in public:
                self._limit(public, deployments)
                for deployment in deployments:
                    self._describe(public, deployment)
            for deployment in deployments:
                self._list_rest(deployment)
        if infos := {name: info for name, info in self.infos.items() if info}:
            self.made.sections["models"] = infos

    def _list_rest(self, deployment: Deployment) -> None:
        public = deployment.public
        for place, settings in (
            ("entry", deployment.entry),
            ("litellm_params", deployment.params),
            ("model_info", deployment.info),
        ):
            rates = [key for key in settings.rest() if key in RATE_KEYS and "*" in public]
            self.unconverted.add(place, rates, public, "pattern")
            self.unconverted.add(place, (key for key in settings.rest() if key not in rates), public)

    def _deployment(self, entry: SourceMapping) -> Deployment:
        """Return the deployment of an entry. Named credentials of the entry are added to its parameters."""
        params, info = entry.child("litellm_params"), entry.child("model_info")
        name = str(params.peek("litellm_credential_name") or "")
        if name in self.credentials:
            self.used_credentials.add(name)
            params.take("litellm_credential_name")
            params = params.over(self.credentials[name])
        if not entry.has("litellm_params") and (name := entry.text("model_name")):
            self.made.lose(f"litellm_params of `{name}`", "missing: its name is taken as the id of the model")
            params = SourceMapping({"model": entry.peek("model_name")})
        return Deployment(str(entry.peek("model_name")), entry, params, info)

    def _connections(self, deployment: Deployment, written: str, provider: str) -> list[DeploymentConnection] | str:
        params, info = deployment.params, deployment.info
        if not written:
            return "`litellm_params.model` is missing"
        base, mode = str(params.peek("api_base") or params.peek("base_url") or ""), str(info.peek("mode") or "")
        if not _is_address(base):
            return "`api_base` is no URL"
        base_model = str(info.peek("base_model") or "").rpartition("/")[2]
        model = source_model(written, provider, base, mode, base_model)
        if isinstance(model, str):
            return model
        deployment.operation = model.operation
        if model.alias:
            newest = f"the newest model as of {DATA_PACKAGES['generated_models']}, {model.model}, is taken"
            self.made.lose(f"alias `{model.alias}` of `{deployment.public}`", newest)
        if model.provider.cloud:
            return CLOUD_CONVERTERS[model.provider.cloud](model, deployment.public, params)
        if not model.model:
            return f"`{written}` names no model"
        if written == ANY_PROVIDER:
            self.made.lose(f"further models of `{deployment.public}`", PREFIX_ADVICE)
        return connections(model, deployment.public, params)

    def _details(self, params: SourceMapping) -> dict[str, object]:
        """Take the parameters of a deployment that are properties of its channel."""
        details: dict[str, object] = {}
        timeout: dict[str, object] = {}
        for key, name in (("timeout", "total"), ("stream_timeout", "first_byte")):
            if seconds := params.number(key):
                timeout[name] = compact(seconds)
        if "total" not in timeout and self.timeout:
            timeout["total"], self.timeout_used = compact(self.timeout), True
        if timeout:
            details["timeout"] = timeout
        for key, name in DETAIL_KEYS.items():
            if (value := params.number(key)) is not None:
                details[name] = round(value * self.weight_scale) if name == "weight" else int(value)
        return details

    def _serve(self, found: DeploymentConnection, details: Mapping[str, object], public: str) -> None:
        """Add the model `public` to the channel with the connection `found`, which is created if it is missing."""
        keys = {**found.keys, **details}
        same = [channel for channel in self.made.channels if channel.keys == keys]
        model = model_entry(public, found.model)
        if any(model in channel.models for channel in same):
            self.made.lose(f"model `{public}`, repeated", "one channel serves equal deployments")
            return
        channel = next((channel for channel in same if channel.add(public, found.model)), None)
        if channel is None:
            channel = self.made.new_channel(found.label, keys)
            self.labels[channel.name] = Label(found.label, found.role)
            channel.add(public, found.model)
        channel.comments += [comment for comment in found.comments if comment not in channel.comments]

    def _limit(self, public: str, deployments: list[Deployment]) -> None:
        """Take the rate limits of a model's deployments. If all deployments have one, the model's limit is the sum."""
        limits = {}
        for rate in RATE_KEYS:
            places = [_place_of(deployment, rate) for deployment in deployments]
            if all(places):
                limits[rate] = int(sum(filter(None, (place.number(rate) for place in places if place))))
        if limits:
            self.infos.setdefault(public, {})["limits"] = limits

    def _describe(self, public: str, deployment: Deployment) -> None:
        info = self.infos.setdefault(public, {})
        price, can = dict[str, object](), dict[str, object]()
        for settings in (deployment.info, deployment.params):
            price |= dict(_prices(settings))
            if settings is deployment.info:
                can |= dict(_capabilities(settings))
        if deployment.operation:
            can["operations"] = [deployment.operation]
        price = {name: price[name] for name in PRICE_KEYS.values() if name in price}
        for name, found in (("price", price), ("capabilities", can)):
            before = _stated(info, name)
            for key in found.keys() & before.keys():
                if found[key] != before[key]:
                    self.made.lose(
                        f"{name}.{key} of an earlier deployment of `{public}`", "that of the last one is taken"
                    )
            if found:
                info[name] = {**before, **found}


def _is_shown(operation: str, public: str, found: DeploymentConnection) -> bool:
    """Return whether a scope of operations need not be stated: it is the usual one, or the ids or channel show it."""
    if operation in {"", USUAL_OPERATION}:
        return True
    preset, protocols = PROVIDER_PRESETS.get(str(found.keys.get("provider"))), found.keys.get("protocols")
    served = preset.protocols if preset is not None else protocols
    if isinstance(served, list | tuple) and protocols_of(operation).issuperset(served):
        return True
    ids = (known_operations(public), known_operations(found.model))
    return any(known is not None and not known.isdisjoint(SCOPE_OPERATIONS[operation]) for known in ids)


def _is_address(base: str) -> bool:
    try:
        return urlsplit(base).hostname != ""
    except ValueError:
        return False


def _stated(info: Mapping[str, object], name: str) -> dict[str, object]:
    before = info.get(name)
    return dict(before) if isinstance(before, dict) else {}


def _place_of(deployment: Deployment, rate: str) -> SourceMapping | None:
    places = (deployment.entry, deployment.params, deployment.info)
    return next((place for place in places if place.peek_number(rate)), None)


def _prices(settings: SourceMapping) -> Iterator[tuple[str, str]]:
    for key, name in PRICE_KEYS.items():
        if (cost := settings.number(key)) is not None:
            yield name, f"{Decimal(str(cost)) * 1_000_000:.6f}".rstrip("0").rstrip(".")


def _capabilities(settings: SourceMapping) -> Iterator[tuple[str, object]]:
    for key, name in LIMIT_KEYS.items():
        if count := settings.number(key):
            yield name, int(count)
    for key, name in CAPABILITY_KEYS.items():
        if settings.peek(key) is True:
            settings.take(key)
            yield name, True
    if settings.peek("supports_vision") is True:
        settings.take("supports_vision")
        yield "inputs", ["image"]
