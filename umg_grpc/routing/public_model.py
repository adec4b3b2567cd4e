"""Models as callers name them: properties, and the description in the list of models."""

from collections.abc import Sequence
from dataclasses import dataclass

from umg_grpc.config import Channel, Config
from umg_grpc.config.values import ModelLimits
from umg_grpc.model_catalogue import describe
from umg_grpc.prices import FREE, Prices, price_list
from umg_grpc.routing.channel_target import EMBED, Target, formats_of
from umg_grpc.shipped_prices import shipped_prices
from umg_grpc.text_family_rules import FamilyModel, Suffix, family_model
from umg_grpc.v1 import pb

FREE_PROTOCOLS = frozenset({"local", "sandbox"})
"""Protocols of channels without a provider, which no public price applies to."""


@dataclass(frozen=True)
class PublicModel:
    """A model that callers may name."""

    id: str
    family: str
    """Empty for a model without family rules."""
    described: pb.Model
    """Description for the list of models. Not to be changed."""
    tokenizer: str | None
    """Name of its tokenizer; None for the one of its family."""
    hedge: float | None = None
    """Seconds without a first byte after which a hedge starts; None for no hedging."""
    cache: int | None = None
    """Seconds for which responses are cached, unless the caller sets another time; None for no caching."""
    prices: Prices = FREE
    limits: ModelLimits | None = None
    """Limits of all keys together; None without any."""


@dataclass(frozen=True)
class Resolved:
    """Model that an id or alias stands for."""

    model: PublicModel
    """Base model, which channels serve."""
    rules: FamilyModel
    """Description of the model for the rules of its family."""
    suffix: Suffix | None
    """Suffix after the base model's id (famG only)."""
    alias: str = ""
    """Alias in the request, "" for none; a key that may use the alias may use the model."""


def public_model(config: Config, model: str, targets: Sequence[Target]) -> PublicModel:
    """Build the model that the channels serve under the id. `targets` is not empty."""
    family = next((target.family for target in targets if target.family), "")
    described, info = _build_description(config, model, family, targets), config.models.get(model)
    prices = price_list(described.prices)
    if info is None:
        return PublicModel(model, family, described, tokenizer=None, prices=prices)
    return PublicModel(model, family, described, info.tokenizer, info.hedge, info.cache, prices, info.limits)


def rules_of(model: str, family: str, targets: Sequence[Target]) -> FamilyModel:
    """Return the description of the model for the rules of its family."""
    return family_model(family, model, *(target.model for target in targets))


def under_name(model: PublicModel, name: str) -> pb.Model:
    """Return the description of the model under its id or an alias. Not to be changed."""
    if name == model.id:
        return model.described
    renamed = pb.Model()
    renamed.CopyFrom(model.described)
    if renamed.display_name == renamed.id:
        renamed.display_name = name
    renamed.id = name
    return renamed


def _build_description(config: Config, model: str, family: str, targets: Sequence[Target]) -> pb.Model:
    """Build the description from the catalogue, overridden by the config. The default owner is the first channel."""
    info, described = config.models.get(model), pb.Model(lifecycle=pb.MODEL_LIFECYCLE_ACTIVE)
    if (known := describe(*(target.model for target in targets), model)) is not None:
        described.MergeFrom(known)
    configured = info.described if info else pb.Model()
    for field, _ in configured.ListFields():  # replaces whole fields: lists are not merged
        described.ClearField(field.name)  # type: ignore[arg-type]  # its stub lists the names
    described.MergeFrom(configured)
    if config.shipped_prices and not configured.prices:
        described.prices.extend(_shipped_prices(targets))
    operations = {operation for target in targets for operation in target.operations}
    described.ClearField("operations")
    described.operations.extend(sorted(operations))
    described.ClearField("formats")
    described.formats.extend(formats_of(targets))
    described.id, described.family = model, family
    described.owned_by = (info and info.owned_by) or _owner(targets[0].channel)
    described.display_name = (info and info.display_name) or model
    if info is not None and info.create_time is not None:
        described.create_time.FromDatetime(info.create_time)
    if EMBED not in operations:
        described.ClearField("embedding")
    capabilities = described.capabilities
    if family == "famG" and capabilities.reasoning == pb.REASONING_CONTROL_BUDGET:  # unknown for other families
        capabilities.max_reasoning_tokens = (
            capabilities.max_reasoning_tokens or rules_of(model, family, targets).largest_budget
        )
    return described


def _shipped_prices(targets: Sequence[Target]) -> Sequence[pb.Price]:
    """Return the public prices of the first provider's model that has some; simulated and local models have none."""
    upstream = (target.model for target in targets if FREE_PROTOCOLS.isdisjoint(target.channel.protocols))
    return next((prices for model in upstream if (prices := shipped_prices(model))), ())


def _owner(channel: Channel) -> str:
    """Return the name of the channel as owner; a sandbox is marked as simulated."""
    return f"{channel.name} (simulated)" if "sandbox" in channel.protocols else channel.name
