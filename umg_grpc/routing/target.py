"""A channel as a way to one model, and what it can do with it."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import TypeAlias

from umg_grpc.catalogue import GENERATES, describe
from umg_grpc.config import Channel, ChannelModel, Config
from umg_grpc.config.channels import OWN_PROTOCOLS, PROTOCOLS, TEXT_PROTOCOLS
from umg_grpc.families import family_of
from umg_grpc.quirks import NO_CHANNEL_QUIRKS, NO_QUIRKS, ChannelQuirks, Quirks, known
from umg_grpc.v1 import pb

Operation: TypeAlias = "pb.ModelOperation.ValueType"

GENERATE, EMBED, RERANK = pb.MODEL_OPERATION_GENERATE, pb.MODEL_OPERATION_EMBED, pb.MODEL_OPERATION_RERANK


@dataclass(frozen=True)
class Target:
    """A channel, and how its upstream calls the model."""

    channel: Channel
    model: str
    family: str
    operations: frozenset[Operation]
    """What it can do with the model."""
    quirks: ChannelQuirks = NO_CHANNEL_QUIRKS
    """What the provider refuses of a request for the model, or needs in it."""


def target_of(config: Config, channel: Channel, model: ChannelModel) -> Target:
    """The channel as a way to the model, which is no pattern."""
    info = config.models.get(model.id)
    said = model.family or (info.family if info else None)
    family = said or family_of(model.id, model.upstream)
    return Target(
        channel, model.upstream, family, _operations(config, channel, model), _quirks(config, channel, model, family)
    )


def _quirks(config: Config, channel: Channel, model: ChannelModel, family: str) -> ChannelQuirks:
    """Return what the operator wrote of the channel, then of the model, then what is known of it: first by the
    provider's own id, since the public one may be an alias of another model.
    """
    written, described = channel.quirks, _described_quirks(config, model.id)
    marks = Quirks(cache_marks=channel.prompt_caching == "auto")
    return ChannelQuirks(
        MappingProxyType(
            {
                protocol: written.over(described)
                .over(_limit(model.upstream))
                .over(known(model.upstream, family, channel.base_url, protocol))
                .over(_limit(model.id))
                .over(marks if protocol == "messages" else NO_QUIRKS)
                for protocol in channel.protocols
                if protocol in TEXT_PROTOCOLS
            }
        ),
        written,
    )


def _described_quirks(config: Config, model: str) -> Quirks:
    """Return what the operator's entry of a public model implies. Capabilities without a control of reasoning mean that
    it does not reason; those without search mean nothing, since most providers search in some formats only.
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
    """Return the documented limit of the answers of a model."""
    known_model = describe(model)
    return Quirks(max_output_tokens=known_model.output_token_limit or None) if known_model is not None else NO_QUIRKS


def _operations(config: Config, channel: Channel, model: ChannelModel) -> frozenset[Operation]:
    """What the operator says that the model does, else what is known of it, else all that the channel's protocols do;
    of an upstream of our own, which takes any id, what most are asked for: text. Of what he says the channel may be
    able to do nothing; a known id that its protocols make no sense for is another model of that name.
    """
    able = frozenset(operation for operation in PROTOCOLS if _ways(channel, operation))
    info, known = config.models.get(model.id), describe(model.upstream, model.id)
    if info is not None and info.described.operations:
        return able.intersection(info.described.operations)
    if known is None:
        return able.intersection(GENERATES) if _is_own(channel) else able
    return able.intersection(known.operations) or able


def formats_of(targets: Iterable[Target]) -> list[str]:
    """Those in which some channel does what it does with the model, in the order of the operations."""
    spoken = {name for target in targets for done in target.operations for name in _ways(target.channel, done)}
    return [name for name in dict.fromkeys(chain.from_iterable(PROTOCOLS.values())) if name in spoken]


def _ways(channel: Channel, operation: Operation) -> tuple[str, ...]:
    """The formats in which the channel's upstream does it; one of our own takes the canonical form, which is as near to
    all of them.
    """
    names = PROTOCOLS[operation]
    return names if _is_own(channel) else tuple(name for name in names if name in channel.protocols)


def _is_own(channel: Channel) -> bool:
    return not set(OWN_PROTOCOLS).isdisjoint(channel.protocols)
