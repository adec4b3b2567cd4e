"""From a model id to the channels that serve it. Pure, save for whose turn it is."""

from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from umg_grpc.config import Channel, Config
from umg_grpc.errors import UmgError
from umg_grpc.families import FamilyModel, Suffix, family_model, family_of, split_suffix
from umg_grpc.v1 import pb


@dataclass(frozen=True)
class Target:
    """A channel, and how its upstream calls the model."""

    channel: Channel
    model: str
    family: str


@dataclass(frozen=True)
class PublicModel:
    """What is known of a model that callers may name."""

    id: str
    owned_by: str
    display_name: str
    create_time: datetime | None
    """In UTC; None where the operator gave none."""
    family: str
    """Empty for a model without special rules."""
    protocols: tuple[str, ...]
    """Of all its channels, without repeats."""
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
                info = config.models.get(model.id)
                said = model.family or (info.family if info else None)
                family = said or family_of(model.id, model.upstream)
                targets.setdefault(model.id, []).append(Target(channel, model.upstream, family))
        self._shared = {
            model: {name for target in of_model if target.channel.shared_objects for name in target.channel.protocols}
            for model, of_model in targets.items()
        }
        self._rings = {model: _rings(of_model) for model, of_model in targets.items()}
        self._models = tuple(_public_model(config, model, of_model) for model, of_model in targets.items())
        self._by_id = {model.id: model for model in self._models}
        self._resolved = {
            model.id: Resolved(model, _rules(model, targets[model.id]), suffix=None) for model in self._models
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
            if found is not None and found.rules.family == "famG":
                return Resolved(found.model, found.rules, suffix)
        raise model_not_found(model)

    def channels(self, model: str) -> list[Target]:
        """Where to try for a base model, best first; never empty. Raises UmgError(MODEL_NOT_FOUND)."""
        if (rings := self._rings.get(model)) is None:
            raise model_not_found(model)
        return [target for ring in rings for target in ring.turn()]

    def shares(self, model: str, protocol: str) -> bool:
        """Whether callers may name what they like in the account of a channel that speaks the protocol."""
        return protocol in self._shared.get(model, ())

    def models(self) -> tuple[PublicModel, ...]:
        """Every model, in the order in which the config names them first."""
        return self._models

    def model(self, model: str) -> PublicModel:
        """One of them. Raises UmgError(MODEL_NOT_FOUND)."""
        if (found := self._by_id.get(model)) is None:
            raise model_not_found(model)
        return found


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


def _rules(model: PublicModel, targets: list[Target]) -> FamilyModel:
    return family_model(model.family, model.id, *(target.model for target in targets))


def _public_model(config: Config, model: str, targets: list[Target]) -> PublicModel:
    """Where the operator says nothing of the model, its first channel is its owner."""
    info = config.models.get(model)
    return PublicModel(
        id=model,
        owned_by=(info and info.owned_by) or targets[0].channel.name,
        display_name=(info and info.display_name) or model,
        create_time=info.create_time if info else None,
        family=next((target.family for target in targets if target.family), ""),
        protocols=tuple(dict.fromkeys(name for target in targets for name in target.channel.protocols)),
        tokenizer=info.tokenizer if info else None,
    )


def model_not_found(model: str) -> UmgError:
    """What a caller is told of an id that is not served, or not to it: the two are not told apart."""
    message = f"The model `{model}` does not exist or you do not have access to it."
    return UmgError(pb.ERROR_REASON_MODEL_NOT_FOUND, message, model=model)
