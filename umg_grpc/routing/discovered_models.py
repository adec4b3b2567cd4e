"""Discovered models: adds the models in the lists of providers to the channels of a config."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from types import MappingProxyType

from umg_grpc.base.wildcard_patterns import wildcard_match
from umg_grpc.config import Channel, ChannelModel, Config, ModelInfo
from umg_grpc.config.channel_section import MODEL_ID
from umg_grpc.knowledge.preset_model_lists import vendor_models
from umg_grpc.v1 import pb

Lists = Mapping[str, Sequence[pb.Model] | None]
"""Name of a channel -> models in its provider's list, with the provider's ids; None if the list is not known yet."""


def with_discovered(config: Config, lists: Lists) -> Config:
    """Return the config with the models of the lists that match a pattern of their channel. Properties in a list apply
    where the config sets none. While no list is known, a channel with its preset's models has the provider's known
    models. Once its list is known, a channel with `discovery: only` loses its patterns: it serves only models in its
    list, and exact ids in the config.
    """
    if all(channel.discovery == "off" for channel in config.channels):
        return config
    infos = dict(config.models)
    channels = []
    for channel in config.channels:
        if channel.discovery == "off" or (listed := lists.get(channel.name) or _known(channel)) is None:
            channels.append(channel)
            continue
        found = {model.id: (model, details) for model, details in _served(channel, listed)}
        for name, (_, details) in found.items():
            infos[name] = _info(infos.get(name), details, has_prices=config.shipped_prices)
        channels.append(replace(channel, models=_merged(channel, [model for model, _ in found.values()])))
    return replace(config, channels=tuple(channels), models=MappingProxyType(infos))


def _known(channel: Channel) -> Sequence[pb.Model] | None:
    if channel.discovery not in {"known", "preset"}:
        return None
    return [pb.Model(id=model) for model in vendor_models(channel.provider)] or None


def _merged(channel: Channel, found: Sequence[ChannelModel]) -> tuple[ChannelModel, ...]:
    kept = [model for model in channel.models if channel.discovery != "only" or "*" not in model.id]
    named = {model.id for model in kept}
    return (*kept, *(model for model in found if model.id not in named))


def _served(channel: Channel, listed: Sequence[pb.Model]) -> Iterator[tuple[ChannelModel, pb.Model]]:
    patterns = [model for model in channel.models if "*" in model.id and "*" in model.upstream]
    patterns.sort(key=lambda model: len(model.upstream), reverse=True)  # the most specific first
    for details in listed:
        for pattern in patterns:
            if (part := wildcard_match(pattern.upstream, details.id)) is None:
                continue
            public = pattern.id.replace("*", part)
            if MODEL_ID.fullmatch(public):
                yield ChannelModel(public, details.id, pattern.family, frozenset(details.operations)), details
            break


def _info(configured: ModelInfo | None, details: pb.Model, *, has_prices: bool) -> ModelInfo:
    """Return a model's properties: each from the config (`configured`) if set there, else from the list (`details`)."""
    described = pb.Model()
    described.MergeFrom(details)
    for name in ("id", "display_name", "create_time", "operations", *(() if has_prices else ("prices",))):
        described.ClearField(name)
    base = configured or ModelInfo()
    for field, _ in base.described.ListFields():  # replaces whole fields: lists are not merged
        described.ClearField(field.name)  # type: ignore[arg-type]  # its stub lists the names
    described.MergeFrom(base.described)
    created = details.create_time.ToDatetime(UTC) if details.HasField("create_time") else None
    return replace(
        base,
        display_name=base.display_name or details.display_name or None,
        create_time=base.create_time or created,
        described=described,
    )
