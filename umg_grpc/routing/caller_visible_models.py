"""Public models: models as callers name them, with their properties and their description for the list of models."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta

from umg_grpc.config import Channel, Config
from umg_grpc.config.fallback_section import fallbacks_of
from umg_grpc.config.file_sections import Fallbacks, ModelLimits
from umg_grpc.knowledge.families.text_model_rules import FamilyModel, Suffix, family_model
from umg_grpc.knowledge.model_catalogue import describe
from umg_grpc.knowledge.model_descriptions import describe_known
from umg_grpc.knowledge.model_facts_by_id import find
from umg_grpc.knowledge.model_retirement_dates import WARNING_DAYS
from umg_grpc.knowledge.price_calculation import FREE_PRICES, Prices, price_list
from umg_grpc.knowledge.vendor_addresses import vendor_of
from umg_grpc.operations import OPERATION_ROWS
from umg_grpc.routing.channel_model_prices import stated_prices
from umg_grpc.routing.channel_target import Target, formats_of, is_own
from umg_grpc.routing.retired_model_removal import common_retirement
from umg_grpc.v1 import pb


@dataclass(frozen=True)
class PublicModel:
    """Model that callers can name: id, family, description, prices and limits, the same for all its channels."""

    id: str
    family: str
    """Family of the model, by which its special rules are found; "" if there is none."""
    described: pb.Model
    """Description by the catalogue and the config. Shared by all calls: it must not be modified."""
    listed: pb.Model
    """Description for model lists: `described`, completed with limits and capabilities from public data. These are not
    in `described`, since its limits bound the costs of calls.
    """
    tokenizer: str | None
    """Name of the tokenizer that counts its tokens; None for the tokenizer of its family."""
    hedge: float | None = None
    """Seconds without output after which a second channel is called (hedging); None for no hedging."""
    cache: int | None = None
    """Seconds for which responses are cached, unless the caller sets another time; None for no caching."""
    prices: Prices = FREE_PRICES
    limits: ModelLimits | None = None
    """Limits on the calls of all keys together; None for no limits."""
    fallbacks: Fallbacks | None = None


@dataclass(frozen=True)
class Resolved:
    """Model that the name in a request refers to, by its id or an alias, with the suffix in the name."""

    model: PublicModel
    """Model that channels serve, without alias and suffix."""
    rules: FamilyModel
    """Properties of the model by which the rules of its family change or reject a request."""
    suffix: Suffix | None
    """Suffix after the model's id, which sets the reasoning of the request (famG only); None if there is none."""
    alias: str = ""
    """Alias in the request, "" if there is none. A key that may use the alias may use the model by it."""


def public_model(config: Config, model: str, targets: Sequence[Target], today: date | None = None) -> PublicModel:
    """Build the public model with the id `model`. `targets`: all channels that serve it, at least one; `today`: date by
    which a retirement changes its lifecycle, None to keep it active.
    """
    family = next((target.family for target in targets if target.family), "")
    described, info = _build_description(config, model, family, targets), config.models.get(model)
    if today is not None and (info is None or not info.described.HasField("retire_time")):
        _describe_retirement(described, targets, today, keeps_lifecycle=info is not None and info.described.lifecycle)
    listed, prices = _completed(described, targets), price_list(described.prices)
    made = PublicModel(
        model, family, described, listed, None, prices=prices, fallbacks=fallbacks_of(config.fallbacks, model)
    )
    if info is None:
        return made
    return replace(made, tokenizer=info.tokenizer, hedge=info.hedge, cache=info.cache, limits=info.limits)


def rules_of(model: str, family: str, targets: Sequence[Target]) -> FamilyModel:
    """Return the properties of a model by which the rules of its family change or reject a request.
    `family`: "" for a model without rules. `targets`: its channels, whose provider ids may reveal its version.
    """
    return family_model(family, model, *(target.model for target in targets))


def under_name(model: PublicModel, name: str) -> pb.Model:
    """Return the model's description for lists under `name`, its id or an alias. It is shared: do not change it."""
    if name == model.id:
        return model.listed
    renamed = pb.Model()
    renamed.CopyFrom(model.listed)
    if renamed.display_name == renamed.id:
        renamed.display_name = name
    renamed.id = name
    return renamed


def _build_description(config: Config, model: str, family: str, targets: Sequence[Target]) -> pb.Model:
    """Build the description of a model for the list of models from the catalogue, overridden by the config. Its
    operations and formats are those of its channels, `targets`.
    """
    info, described = config.models.get(model), pb.Model(lifecycle=pb.MODEL_LIFECYCLE_ACTIVE)
    if (known := describe(*(target.model for target in targets), model)) is not None:
        described.MergeFrom(known)
    configured = info.described if info else pb.Model()
    for field, _ in configured.ListFields():  # replaces whole fields: lists are not merged
        described.ClearField(field.name)  # type: ignore[arg-type]  # its stub lists the names
    described.MergeFrom(configured)
    described.ClearField("prices")
    described.prices.extend(_prices(config, model, targets))
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
    for row in OPERATION_ROWS:
        if row.model_field and row.value not in operations:
            described.ClearField(row.model_field)  # type: ignore[arg-type]  # its stub lists the names
    capabilities = described.capabilities
    if family == "famG" and capabilities.reasoning == pb.REASONING_CONTROL_BUDGET:  # unknown for other families
        capabilities.max_reasoning_tokens = (
            capabilities.max_reasoning_tokens or rules_of(model, family, targets).largest_budget
        )
    return described


def _completed(described: pb.Model, targets: Sequence[Target]) -> pb.Model:
    served = [target for target in targets if not is_own(target.channel)]
    if pb.MODEL_OPERATION_GENERATE not in described.operations or len(served) < len(targets):
        return described
    known = describe_known([find(target.model, vendor_of(target.channel.base_url)).facts for target in served])
    for field, _ in described.ListFields():  # replaces whole fields: lists are not merged
        known.ClearField(field.name)  # type: ignore[arg-type]  # its stub lists the names
    known.MergeFrom(described)
    return known


def _describe_retirement(
    described: pb.Model, targets: Sequence[Target], today: date, *, keeps_lifecycle: object
) -> None:
    """Set the time at which the last vendor removes the model, and the lifecycle, unless the config sets it."""
    if (row := common_retirement(targets)) is None:
        return
    described.retire_time.FromDatetime(datetime.combine(row.day, time(), UTC))
    if keeps_lifecycle:
        return
    if today >= row.day:
        described.lifecycle = pb.MODEL_LIFECYCLE_RETIRED
    elif row.day <= today + timedelta(days=WARNING_DAYS):
        described.lifecycle = pb.MODEL_LIFECYCLE_DEPRECATED


def _prices(config: Config, model: str, targets: Sequence[Target]) -> Sequence[pb.Price]:
    priced = [target for target in targets if target.prices is not FREE_PRICES]
    if not priced:
        return ()
    first = next((target for target in priced if not is_own(target.channel)), priced[0])
    return stated_prices(config, first.channel, model, first.model)


def _owner(channel: Channel) -> str:
    return f"{channel.name} (simulated)" if channel.is_simulated else channel.name
