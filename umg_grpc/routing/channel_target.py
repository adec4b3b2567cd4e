"""Targets: pairs of a channel and a model, with the operations and quirks that the channel has for the model."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType

from umg_grpc.config import Channel, ChannelModel, Config
from umg_grpc.config.channel_section import OPERATION_PROTOCOLS, OWN_PROTOCOLS
from umg_grpc.knowledge.families.image_model_rules import family_row
from umg_grpc.knowledge.families.text_model_rules import family_of
from umg_grpc.knowledge.families.video_model_rules import video_family
from umg_grpc.knowledge.model_catalogue import describe
from umg_grpc.knowledge.model_quirk_definitions import NO_CHANNEL_QUIRKS, NO_QUIRKS, ChannelQuirks, Quirks
from umg_grpc.knowledge.model_retirement_dates import Retirement, retirement_of
from umg_grpc.knowledge.operations_by_model_id import known_operations
from umg_grpc.knowledge.price_calculation import FREE_PRICES, Prices
from umg_grpc.knowledge.provider_presets import PROVIDER_PRESETS
from umg_grpc.knowledge.provider_quirks import known
from umg_grpc.knowledge.vendor_addresses import vendor_of
from umg_grpc.operations import SCOPE_OPERATIONS, ModelOperation
from umg_grpc.operations.generation_operation import GENERATE_OPERATION
from umg_grpc.operations.image_operation import IMAGE_EDITING, IMAGE_GENERATION
from umg_grpc.operations.provider_protocols_by_name import has_callers
from umg_grpc.routing.channel_model_prices import target_prices

GENERATE_VALUE = GENERATE_OPERATION.value


@dataclass(frozen=True)
class Target:
    """A channel that serves a model, with the provider's id of the model and the model's family, "" for none."""

    channel: Channel
    model: str
    family: str
    operations: frozenset[ModelOperation]
    quirks: ChannelQuirks = NO_CHANNEL_QUIRKS
    """Fields of a request for the model that the provider rejects or requires."""
    prices: Prices = FREE_PRICES
    """Prices by which a call of the channel is charged; `FREE_PRICES`, without any, if it has none."""
    retirement: Retirement | None = None
    is_listed: bool = False
    """Whether the model comes from the provider's list or the preset's known models, not from the config."""

    def supports(self, operation: ModelOperation) -> bool:
        """Return whether the channel can be called for the operation. For image generation, a model that only edits
        images counts too, because its family's rules give a better error for a request without input images.
        """
        if operation in self.operations:
            return True
        return operation == IMAGE_GENERATION.value and IMAGE_EDITING.value in self.operations


def target_of(config: Config, channel: Channel, model: ChannelModel) -> Target:
    """Build the target of a channel and one of its models. `model`: an exact id, not a pattern with `*`."""
    info = config.models.get(model.id)
    configured = model.family or (info.family if info else None)
    family = configured or _known_family(model.id, model.upstream)
    return Target(
        channel,
        model.upstream,
        family,
        _operations(config, channel, model),
        _quirks(config, channel, model, family),
        target_prices(config, channel, model.id, model.upstream),
        retirement_of(model.upstream, vendor_of(channel.base_url)),
        model.listed is not None,
    )


def _known_family(*ids: str) -> str:
    rows = (family_row(model) for model in ids)
    of_images = next((row.family for row in rows if row is not None), "")
    return family_of(*ids) or of_images or video_family(*ids)


def _quirks(config: Config, channel: Channel, model: ChannelModel, family: str) -> ChannelQuirks:
    """Return the quirks of a channel for a model, by protocol. Merged, in this order: the channel's config, the model's
    config, the catalogue's limits, and known quirks of providers.
    """
    written, described = channel.quirks, _described_quirks(config, model.id)
    texts = [protocol for protocol in channel.protocols if protocol in GENERATE_OPERATION.protocols]
    of_upstream, of_model = _limit(model.upstream), _limit(model.id)
    return ChannelQuirks(
        MappingProxyType(
            {
                protocol: written.first(
                    _marks(channel, protocol)
                    .over(described)
                    .over(of_upstream)
                    .over(known(model.upstream, family, channel.address(protocol), protocol))
                    .over(of_model)
                )
                for protocol in texts
            }
        ),
        written,
        MappingProxyType(
            {
                protocol: known(model.upstream, family, channel.address(protocol), protocol, certain=True)
                for protocol in texts
            }
        ),
    )


def _marks(channel: Channel, protocol: str) -> Quirks:
    marked = channel.marks_prompts(protocol)
    return NO_QUIRKS if marked is None else Quirks(cache_marks=marked)


def _described_quirks(config: Config, model: str) -> Quirks:
    """Return the quirks that follow from the configured properties of the public model; none without properties. The
    capability search implies nothing if it is absent, since most providers search in some formats only.
    """
    if (info := config.models.get(model)) is None:
        return NO_QUIRKS
    described = info.described
    can = described.capabilities if described.HasField("capabilities") else None
    return Quirks(
        web_search=True if can is not None and can.search else None,
        reasoning=bool(can.reasoning) if can is not None else None,
        max_output_tokens=described.output_token_limit if described.HasField("output_token_limit") else None,
    )


def _limit(model: str) -> Quirks:
    known_model = describe(model)
    return Quirks(max_output_tokens=known_model.output_token_limit or None) if known_model is not None else NO_QUIRKS


def _operations(config: Config, channel: Channel, model: ChannelModel) -> frozenset[ModelOperation]:
    """Return the operations that the channel supports for the model, among those of its protocols. They come from the
    model's config, or else from the preset, the knowledge of models, or the provider's list.
    """
    able = frozenset(operation for operation in OPERATION_PROTOCOLS if has_operation(channel, operation))
    info = config.models.get(model.id)
    if info is not None and info.described.operations:
        return able.intersection(info.described.operations)
    preset = PROVIDER_PRESETS.get(channel.provider)
    if (stated := known_operations_of(channel, model)) is not None:
        found = able.intersection(stated)
        return found or (able if preset is None and model.listed is None and model in channel.models else found)
    if is_own(channel) or preset is not None or model.listed is not None:
        return able.intersection(SCOPE_OPERATIONS[GENERATE_OPERATION.scope]) or able
    return able


def has_operation(channel: Channel, operation: ModelOperation) -> bool:
    """Return whether any protocol of the channel has the operation, regardless of the model."""
    return is_own(channel) or bool(_formats_for(channel, operation))


def known_operations_of(channel: Channel, model: ChannelModel) -> Collection[ModelOperation] | None:
    """Return the operations of a channel's model; None if they are unknown. Sources, in this order: its preset, the
    knowledge of models, the provider's list. The provider's id is looked up first, since the public id may be an alias.
    """
    preset = PROVIDER_PRESETS.get(channel.provider)
    if preset is not None and (stated := preset.operations_of(model.upstream)) is not None:
        return stated
    for name in dict.fromkeys((model.upstream, model.id)):
        if (known := known_operations(name)) is not None:
            return known
    return model.listed or None


def formats_of(targets: Iterable[Target]) -> list[str]:
    """Return the callers' formats of the targets, without repetition, in the order of `OPERATION_PROTOCOLS`."""
    formats = {name for target in targets for done in target.operations for name in _formats_for(target.channel, done)}
    return [
        name
        for name in dict.fromkeys(chain.from_iterable(OPERATION_PROTOCOLS.values()))
        if name in formats and has_callers(name)
    ]


def _formats_for(channel: Channel, operation: ModelOperation) -> Collection[str]:
    """Return the names of the wire formats in which the channel can be called for the operation; empty if it cannot.
    Local and sandbox channels have all formats, since they are called in the canonical form, without a wire format.
    """
    names = OPERATION_PROTOCOLS[operation]
    return names if is_own(channel) else tuple(name for name in names if name in channel.protocols)


def is_own(channel: Channel) -> bool:
    """Return whether the channel leads to the gateway itself (a local model or the sandbox) and not to a provider."""
    return not set(OWN_PROTOCOLS).isdisjoint(channel.protocols)
