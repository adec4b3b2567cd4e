"""What is known of a model that callers may name, and what they are told of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from umg_grpc.catalogue import describe
from umg_grpc.config import Channel, Config
from umg_grpc.families import FamilyModel, Suffix, family_model
from umg_grpc.routing.target import EMBED, Target, formats_of
from umg_grpc.v1 import pb


@dataclass(frozen=True)
class PublicModel:
    """What is known of a model that callers may name."""

    id: str
    family: str
    """Empty for a model without special rules."""
    described: pb.Model
    """As callers are told of it. Not to be changed."""
    tokenizer: str | None
    """What counts its tokens; None for that of its family."""
    hedge: float | None = None
    """Seconds without a first byte after which a second channel is asked too; None is never."""
    cache: int | None = None
    """Seconds for which answers are kept, unless the caller says otherwise; None is not at all."""


@dataclass(frozen=True)
class Resolved:
    """What an id names, as callers write it."""

    model: PublicModel
    """The base model, which channels serve."""
    rules: FamilyModel
    """The model as the rules of its family see it."""
    suffix: Suffix | None
    """What was written behind the base model's id (famG only)."""
    alias: str = ""
    """The alias by which it was named; a key that may use that may use the model."""


def public_model(config: Config, model: str, targets: Sequence[Target]) -> PublicModel:
    """The model that the channels serve under the id; there is at least one."""
    family = next((target.family for target in targets if target.family), "")
    described, info = _described(config, model, family, targets), config.models.get(model)
    if info is None:
        return PublicModel(model, family, described, tokenizer=None)
    return PublicModel(model, family, described, info.tokenizer, info.hedge, info.cache)


def rules_of(model: str, family: str, targets: Sequence[Target]) -> FamilyModel:
    """The model as the rules of its family see it."""
    return family_model(family, model, *(target.model for target in targets))


def under_name(model: PublicModel, name: str) -> pb.Model:
    """What callers are told of the model under this name, perhaps another than its own. Not to be changed."""
    if name == model.id:
        return model.described
    told = pb.Model()
    told.CopyFrom(model.described)
    if told.display_name == told.id:
        told.display_name = name
    told.id = name
    return told


def _described(config: Config, model: str, family: str, targets: Sequence[Target]) -> pb.Model:
    """What is known of the model, under what the operator says of it. Where he says nothing of its owner, its first
    channel is its owner.
    """
    info, described = config.models.get(model), pb.Model(lifecycle=pb.MODEL_LIFECYCLE_ACTIVE)
    if (known := describe(*(target.model for target in targets), model)) is not None:
        described.MergeFrom(known)
    said = info.described if info else pb.Model()
    for field, _ in said.ListFields():  # what he says of anything stands for all of it: lists are not added to
        described.ClearField(field.name)  # type: ignore[arg-type]  # its stub lists the names
    described.MergeFrom(said)
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
    thinks = described.capabilities
    if family == "famG" and thinks.reasoning == pb.REASONING_CONTROL_BUDGET:  # of other families nobody knows it
        thinks.max_reasoning_tokens = thinks.max_reasoning_tokens or rules_of(model, family, targets).largest_budget
    return described


def _owner(channel: Channel) -> str:
    """Its name; a simulated one says that it is."""
    return f"{channel.name} (simulated)" if "sandbox" in channel.protocols else channel.name
