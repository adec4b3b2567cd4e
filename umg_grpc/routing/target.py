"""A channel as a way to one model, and what it can do with it."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from umg_grpc.catalogue import GENERATES, describe
from umg_grpc.config import Channel, ChannelModel, Config
from umg_grpc.config.channels import OWN_PROTOCOLS, PROTOCOLS
from umg_grpc.families import family_of
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


def target_of(config: Config, channel: Channel, model: ChannelModel) -> Target:
    """The channel as a way to the model, which is no pattern."""
    info = config.models.get(model.id)
    said = model.family or (info.family if info else None)
    family = said or family_of(model.id, model.upstream)
    return Target(channel, model.upstream, family, _operations(config, channel, model))


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
