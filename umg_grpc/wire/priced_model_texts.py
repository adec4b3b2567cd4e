"""Texts about priced models for people, on the command line and in the console."""

from collections.abc import Callable

from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import enum_names

SOURCE_NAMES = enum_names(pb.PriceSource.DESCRIPTOR)


def source_text(each: pb.ModelChannelPrice) -> str:
    """Return the source of prices as text: `file umg.yaml:41`, `public 2026-11-01`."""
    return " ".join(part for part in (SOURCE_NAMES.get(each.source, ""), each.place, each.as_of) if part)


def text_by_channel(model: pb.PricedModel, text: Callable[[pb.ModelChannelPrice], str]) -> str:
    """Return a text about each channel of a model; the channels are named if their texts differ."""
    texts = {each.channel: text(each) for each in model.channels}
    if len(set(texts.values())) <= 1:
        return next(iter(texts.values()), "")
    return ", ".join(f"{channel}: {each}" for channel, each in texts.items())
