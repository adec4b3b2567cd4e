"""From a model id to the channels that serve it. Pure, save for whose turn it is."""

from dataclasses import dataclass
from itertools import chain, groupby
from typing import TypeAlias

from umg_grpc.catalogue import GENERATES, describe
from umg_grpc.config import Channel, ChannelModel, Config
from umg_grpc.config.channels import OWN_PROTOCOLS, PROTOCOLS
from umg_grpc.errors import UmgError
from umg_grpc.families import FamilyModel, Suffix, family_model, family_of, split_suffix
from umg_grpc.v1 import pb

Operation: TypeAlias = "pb.ModelOperation.ValueType"

GENERATE, EMBED, RERANK = pb.MODEL_OPERATION_GENERATE, pb.MODEL_OPERATION_EMBED, pb.MODEL_OPERATION_RERANK
LONGEST_ID = 256
"""Characters of a model's id; what is longer is no model's."""
VERBS: dict[Operation, str] = {GENERATE: "generate text", EMBED: "embed texts", RERANK: "rerank documents"}


@dataclass(frozen=True)
class Target:
    """A channel, and how its upstream calls the model."""

    channel: Channel
    model: str
    family: str
    operations: frozenset[Operation]
    """What it can do with the model."""


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


@dataclass(frozen=True)
class Resolved:
    """What an id names, as callers write it."""

    model: PublicModel
    """The base model, which channels serve."""
    rules: FamilyModel
    """The model as the rules of its family see it."""
    suffix: Suffix | None
    """What was written behind the base model's id (famG only)."""


class Router:
    """The channels of every model, in the order of the config. For one thread: each call moves the turns on."""

    def __init__(self, config: Config) -> None:
        """A config without channels is taken too: it serves no model."""
        targets: dict[str, list[Target]] = {}
        for channel in config.channels:
            for model in channel.models:
                targets.setdefault(model.id, []).append(_target(config, channel, model))
        self._shared = {
            model: {name for target in of_model if target.channel.shared_objects for name in target.channel.protocols}
            for model, of_model in targets.items()
        }
        self._targets = targets
        self._rings = {
            (model, operation): _rings([target for target in of_model if operation in target.operations])
            for model, of_model in targets.items()
            for operation in PROTOCOLS
        }
        self._models = tuple(_public_model(config, model, of_model) for model, of_model in targets.items())
        self._resolved = {
            model.id: Resolved(model, _rules(model.id, model.family, targets[model.id]), suffix=None)
            for model in self._models
        }

    def resolve(self, model: str) -> Resolved:
        """The model of an id: one that the config names exactly so, else a famG model with a suffix behind its id.
        Raises UmgError(MODEL_NOT_FOUND), also for a suffix that is not one of the five forms (readings, 10).
        """
        if (exact := self._resolved.get(model)) is not None:
            return exact
        if (split := split_suffix(model)) is not None:
            base, suffix = split
            found = self._resolved.get(base)
            if found is not None and found.rules.family == "famG" and self._rings[base, GENERATE]:
                return Resolved(found.model, found.rules, suffix)
        raise model_not_found(model)

    def channels(self, model: str, operation: Operation = GENERATE) -> list[Target]:
        """Where to try for a base model, best first; never empty. Raises UmgError: MODEL_NOT_FOUND, UNSUPPORTED_FIELD
        for one that no channel can do that with.
        """
        if (rings := self._rings.get((model, operation))) is None:
            raise model_not_found(model)
        if not rings:
            raise self._cannot(model, operation)
        return [target for ring in rings for target in ring.turn()]

    def check(self, model: str, operation: Operation) -> None:
        """Raises UmgError as `channels` does."""
        if not self._rings.get((model, operation)):
            self.channels(model, operation)

    def targets(self, model: str) -> list[Target]:
        """All channels of a base model, whatever they can do with it, lower priorities first."""
        return sorted(self._targets[model], key=lambda target: target.channel.priority)

    def _cannot(self, model: str, operation: Operation) -> UmgError:
        can = [verb for known, verb in VERBS.items() if self._rings.get((model, known))]
        does = f"; it can {' and '.join(can)}" if can else ""
        message = f"model: `{model}` cannot {VERBS.get(operation, 'do that')}{does}"
        return UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field="model")

    def shares(self, model: str, protocol: str) -> bool:
        """Whether callers may name what they like in the account of a channel that speaks the protocol."""
        return protocol in self._shared.get(model, ())

    def models(self) -> tuple[PublicModel, ...]:
        """Every model, in the order in which the config names them first."""
        return self._models


class _Ring:
    """Targets of one priority, in turn by weight: smooth weighted round-robin, as nginx does it.

    Each turn every target gains its weight and the one that has most is first, for which it pays what all gained:
    with weights 5, 1 and 1 the first are a a b a c a a. The rest follow by what they have.
    """

    def __init__(self, targets: list[Target]) -> None:
        self._targets = targets
        self._total = sum(target.channel.weight for target in targets)
        self._credit = [0] * len(targets)

    def turn(self) -> list[Target]:
        if len(self._targets) == 1:
            return self._targets
        for position, target in enumerate(self._targets):
            self._credit[position] += target.channel.weight
        # A weight of 0 has no turn of its own: it comes after all that have one, whatever they owe.
        order = sorted(
            range(len(self._targets)), key=lambda at: (self._targets[at].channel.weight == 0, -self._credit[at])
        )
        self._credit[order[0]] -= self._total
        return [self._targets[position] for position in order]


def _rings(targets: list[Target]) -> list[_Ring]:
    by_priority = sorted(targets, key=lambda target: target.channel.priority)
    return [_Ring(list(group)) for _, group in groupby(by_priority, key=lambda target: target.channel.priority)]


def _rules(model: str, family: str, targets: list[Target]) -> FamilyModel:
    return family_model(family, model, *(target.model for target in targets))


def _target(config: Config, channel: Channel, model: ChannelModel) -> Target:
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


def _ways(channel: Channel, operation: Operation) -> tuple[str, ...]:
    """The formats in which the channel's upstream does it; one of our own takes the canonical form, which is as near to
    all of them.
    """
    names = PROTOCOLS[operation]
    return names if _is_own(channel) else tuple(name for name in names if name in channel.protocols)


def _is_own(channel: Channel) -> bool:
    return not set(OWN_PROTOCOLS).isdisjoint(channel.protocols)


def _public_model(config: Config, model: str, targets: list[Target]) -> PublicModel:
    info = config.models.get(model)
    family = next((target.family for target in targets if target.family), "")
    return PublicModel(model, family, _described(config, model, family, targets), info.tokenizer if info else None)


def _described(config: Config, model: str, family: str, targets: list[Target]) -> pb.Model:
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
    described.formats.extend(_formats(targets))
    described.id, described.family = model, family
    described.owned_by = (info and info.owned_by) or _owner(targets[0].channel)
    described.display_name = (info and info.display_name) or model
    if info is not None and info.create_time is not None:
        described.create_time.FromDatetime(info.create_time)
    if EMBED not in operations:
        described.ClearField("embedding")
    thinks = described.capabilities
    if family == "famG" and thinks.reasoning == pb.REASONING_CONTROL_BUDGET:  # of other families nobody knows it
        thinks.max_reasoning_tokens = thinks.max_reasoning_tokens or _rules(model, family, targets).largest_budget
    return described


def _owner(channel: Channel) -> str:
    """Its name; a simulated one says that it is."""
    return f"{channel.name} (simulated)" if "sandbox" in channel.protocols else channel.name


def _formats(targets: list[Target]) -> list[str]:
    """Those in which some channel does what it does with the model, in the order of the operations."""
    spoken = {name for target in targets for done in target.operations for name in _ways(target.channel, done)}
    return [name for name in dict.fromkeys(chain.from_iterable(PROTOCOLS.values())) if name in spoken]


def model_not_found(model: str) -> UmgError:
    """What a caller is told of an id that is not served, or not to it: the two are not told apart."""
    named = model if len(model) <= LONGEST_ID else f"{model[:LONGEST_ID]}..."
    message = f"The model `{named}` does not exist or you do not have access to it."
    return UmgError(pb.ERROR_REASON_MODEL_NOT_FOUND, message, model=named)
