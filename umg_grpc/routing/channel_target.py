"""Targets: a channel for one model, with the operations and quirks of the channel for it."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType
from typing import TypeAlias

from umg_grpc.config import Channel, ChannelModel, Config
from umg_grpc.config.channels import OWN_PROTOCOLS, PROTOCOLS
from umg_grpc.image_family_rules import family_row
from umg_grpc.known_provider_quirks import known
from umg_grpc.model_catalogue import GENERATES, describe
from umg_grpc.provider_quirks import NO_CHANNEL_QUIRKS, NO_QUIRKS, ChannelQuirks, Quirks
from umg_grpc.text_family_rules import family_of
from umg_grpc.v1 import pb
from umg_grpc.video_family_rules import video_family
from umg_grpc.wire.provider_protocols import TEXT_PROTOCOLS

Operation: TypeAlias = "pb.ModelOperation.ValueType"

GENERATE, EMBED, RERANK = pb.MODEL_OPERATION_GENERATE, pb.MODEL_OPERATION_EMBED, pb.MODEL_OPERATION_RERANK
MAKE_IMAGE, EDIT_IMAGE = pb.MODEL_OPERATION_GENERATE_IMAGE, pb.MODEL_OPERATION_EDIT_IMAGE
CREATE_VIDEO, REMIX_VIDEO = pb.MODEL_OPERATION_CREATE_VIDEO, pb.MODEL_OPERATION_REMIX_VIDEO


@dataclass(frozen=True)
class Target:
    """A channel with its upstream's id of the model."""

    channel: Channel
    model: str
    family: str
    operations: frozenset[Operation]
    """Operations that the channel supports for the model."""
    quirks: ChannelQuirks = NO_CHANNEL_QUIRKS
    """Fields of a request for the model that the provider rejects or requires."""

    def supports(self, operation: Operation) -> bool:
        """Return whether the channel can be called for the operation. Image calls are routed as `MAKE_IMAGE`, with or
        without inputs: the family of a model that only edits has a better error for a missing image.
        """
        return operation in self.operations or (operation == MAKE_IMAGE and EDIT_IMAGE in self.operations)


def target_of(config: Config, channel: Channel, model: ChannelModel) -> Target:
    """Build the target of a channel and a model, which is not a pattern."""
    info = config.models.get(model.id)
    configured = model.family or (info.family if info else None)
    family = configured or _known_family(model.id, model.upstream)
    return Target(
        channel, model.upstream, family, _operations(config, channel, model), _quirks(config, channel, model, family)
    )


def _known_family(*ids: str) -> str:
    """Return the family of texts, images or videos whose prefix one of the ids has, "" for none."""
    rows = (family_row(model) for model in ids)
    of_images = next((row.family for row in rows if row is not None), "")
    return family_of(*ids) or of_images or video_family(*ids)


def _quirks(config: Config, channel: Channel, model: ChannelModel, family: str) -> ChannelQuirks:
    """Merge the quirks: config of the channel, then config of the model, then the known quirks. The provider's id is
    looked up before the public one, which may be an alias of another model.
    """
    written, described = channel.quirks, _described_quirks(config, model.id)
    marks = Quirks(cache_marks=channel.prompt_caching == "auto")
    of_upstream, of_model = _limit(model.upstream), _limit(model.id)
    return ChannelQuirks(
        MappingProxyType(
            {
                protocol: written.over(described)
                .over(of_upstream)
                .over(known(model.upstream, family, channel.base_url, protocol))
                .over(of_model)
                .over(marks if TEXT_PROTOCOLS[protocol].has_cache_marks else NO_QUIRKS)
                for protocol in channel.protocols
                if protocol in TEXT_PROTOCOLS
            }
        ),
        written,
    )


def _described_quirks(config: Config, model: str) -> Quirks:
    """Return the quirks that the config's entry of a public model implies.

    An entry with capabilities but no reasoning control implies that the model does not reason. Missing search
    capabilities imply nothing, since most providers search in some formats only.
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
    """Return the documented output token limit of a model."""
    known_model = describe(model)
    return Quirks(max_output_tokens=known_model.output_token_limit or None) if known_model is not None else NO_QUIRKS


def _operations(config: Config, channel: Channel, model: ChannelModel) -> frozenset[Operation]:
    """Return the operations of the model in the config, else in the catalogue, else all of the channel's protocols (for
    local and sandbox channels, which accept any id, only text generation), limited to those of the channel. The result
    may be empty for a config entry. A catalogue entry without common operations is of another model of that name.
    """
    able = frozenset(operation for operation in PROTOCOLS if _is_own(channel) or _formats_for(channel, operation))
    info, known = config.models.get(model.id), describe(model.upstream, model.id)
    if info is not None and info.described.operations:
        return able.intersection(info.described.operations)
    if known is None:
        return able.intersection(GENERATES) if _is_own(channel) else able
    return able.intersection(known.operations) or able


def formats_of(targets: Iterable[Target]) -> list[str]:
    """Return the formats in which any of the targets is called, in the order of the operations."""
    formats = {name for target in targets for done in target.operations for name in _formats_for(target.channel, done)}
    return [name for name in dict.fromkeys(chain.from_iterable(PROTOCOLS.values())) if name in formats]


def _formats_for(channel: Channel, operation: Operation) -> Collection[str]:
    """Return the formats of the operation at the channel's upstream. Local and sandbox channels take the canonical
    form, which can be translated from all formats.
    """
    names = PROTOCOLS[operation]
    return names if _is_own(channel) else tuple(name for name in names if name in channel.protocols)


def _is_own(channel: Channel) -> bool:
    """Return whether the upstream is part of UMG: a local model or the sandbox."""
    return not set(OWN_PROTOCOLS).isdisjoint(channel.protocols)
