"""The channels of every model, in the order in which a call asks them."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

from umg_grpc.config import Config
from umg_grpc.config.channels import PROTOCOLS
from umg_grpc.config.served import Served
from umg_grpc.errors import UmgError
from umg_grpc.families import split_suffix
from umg_grpc.routing.described import PublicModel, Resolved, public_model, rules_of
from umg_grpc.routing.order import ANY, Rank, Turns, Wish, allowed, ordered
from umg_grpc.routing.target import EMBED, GENERATE, RERANK, Operation, Target, target_of
from umg_grpc.v1 import pb

VERBS: dict[Operation, str] = {GENERATE: "generate text", EMBED: "embed texts", RERANK: "rerank documents"}
LONGEST_ID = 256
"""Characters of a model's id; what is longer is no model's."""
MOST_FOUND = 1024
"""Ids that only a pattern serves are remembered, the last ones used."""


class Explained(NamedTuple):
    """A channel, and why it has its place."""

    target: Target
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class _Model:
    """All that is known of one id."""

    resolved: Resolved
    targets: Sequence[Target]
    """In the order of the config."""
    able: Mapping[Operation, list[Target]]
    turns: defaultdict[Operation, Turns]
    shared: frozenset[str]
    """Protocols of the channels whose account's objects every caller may name."""


class Router:
    """The channels of every model, in the order of the config. For one thread: each call moves the turns on."""

    def __init__(self, config: Config) -> None:
        """A config without channels is taken too: it serves no model."""
        self._config = config
        self._ids = Served(config.channels)
        self._turns: defaultdict[str, defaultdict[Operation, Turns]] = defaultdict(lambda: defaultdict(Turns))
        self._found: dict[str, _Model] = {}
        named = dict.fromkeys((*self._ids.exact(), *config.models))  # a pattern may serve what is described
        self._exact = {model: served for model in named if (served := self._serve(model)) is not None}
        self._aliases: dict[str, Resolved] = {}
        self._aliases = dict(self._resolved_aliases())
        self._models = tuple(served.resolved.model for served in self._exact.values())

    def resolve(self, model: str) -> Resolved:
        """The model of an id: one that the config names exactly so, else an alias, else a famG model with a suffix
        behind its id, else one that a pattern serves. Raises UmgError(MODEL_NOT_FOUND), also for a suffix that is not
        one of the five forms (readings, 10).
        """
        if (exact := self._exact.get(model)) is not None:
            return exact.resolved
        if (alias := self._aliases.get(model)) is not None:
            return alias
        found = self._suffixed(model)
        if found is None and (served := self._served(model)) is not None:
            found = served.resolved
        if found is None:
            raise model_not_found(model)
        return found

    def channels(self, model: str, operation: Operation = GENERATE, wish: Wish = ANY) -> list[Target]:
        """Where to try for a base model, best first; never empty. Raises UmgError: MODEL_NOT_FOUND, UNSUPPORTED_FIELD
        for one that no channel can do that with, PERMISSION_DENIED where the key's pins leave none of those that can.
        """
        served = self._known(model)
        targets = self._reachable(served, operation, wish)
        if len(targets) == 1:
            return targets
        return [target for target, _ in ordered(targets, wish, served.turns[operation].take)]

    def explain(self, model: str, operation: Operation = GENERATE, wish: Wish = ANY) -> list[Explained]:
        """What `channels` would give now, and why; it moves no turn. Raises UmgError as that does."""
        served = self._known(model)
        targets = self._reachable(served, operation, wish)
        order = list(ordered(targets, wish, served.turns[operation].look))
        weights = Counter[Rank]()
        for target, rank in order:
            weights[rank] += target.channel.weight
        return [Explained(target, tuple(_reasons(target, rank, wish, weights[rank]))) for target, rank in order]

    def check(self, model: str, operation: Operation, pins: tuple[str, ...] = ()) -> None:
        """Raises UmgError as `channels` does."""
        self._reachable(self._known(model), operation, Wish(pins=pins) if pins else ANY)

    def reaches(self, model: str, pins: tuple[str, ...]) -> bool:
        """Whether some channel of a base model is left to a key with these pins."""
        return not pins or any(allowed(pins, target.channel.name) for target in self._known(model).targets)

    def has_several(self, model: str) -> bool:
        """Whether more than one channel serves a base model, whatever they can do with it."""
        return len(self._known(model).targets) > 1

    def targets(self, model: str) -> list[Target]:
        """All channels of a base model, whatever they can do with it, lower priorities first."""
        return sorted(self._known(model).targets, key=lambda target: target.channel.priority)

    def shares(self, model: str, protocol: str) -> bool:
        """Whether callers may name what they like in the account of a channel that speaks the protocol."""
        served = self._served(model)
        return served is not None and protocol in served.shared

    def models(self) -> tuple[PublicModel, ...]:
        """Every model, in the order in which the config names them first; those that only a pattern serves where the
        config describes them.
        """
        return self._models

    def aliases(self) -> Mapping[str, Resolved]:
        """What each further name of a model stands for."""
        return self._aliases

    def _known(self, model: str) -> _Model:
        if (served := self._served(model)) is None:
            raise model_not_found(model)
        return served

    def _served(self, model: str) -> _Model | None:
        """What is known of a base model; of one that a pattern serves it is remembered for a while."""
        if (served := self._exact.get(model)) is not None:
            return served
        if (served := self._found.pop(model, None) or self._serve(model)) is not None:
            self._found[model] = served
            if len(self._found) > MOST_FOUND:
                del self._found[next(iter(self._found))]
        return served

    def _serve(self, model: str) -> _Model | None:
        if (found := self._ids.find(model)) is None:
            return None
        targets = [target_of(self._config, channel, way) for channel, way in found.ways]
        public = public_model(self._config, model, targets)
        return _Model(
            Resolved(public, rules_of(model, public.family, targets), suffix=None),
            targets,
            {done: [target for target in targets if done in target.operations] for done in PROTOCOLS},
            # the ids of a pattern share their turns: most of them are asked for only now and then
            self._turns[found.written],
            frozenset(chain.from_iterable(way.protocols for way, _ in found.ways if way.shared_objects)),
        )

    def _suffixed(self, model: str) -> Resolved | None:
        """A famG model, or an alias of one, with a suffix behind its id."""
        if (split := split_suffix(model)) is None:
            return None
        base, suffix = split
        alias, served = self._aliases.get(base), self._exact.get(base)
        if served is None:
            served = self._served(alias.model.id if alias is not None else base)
        if served is None or not served.able[GENERATE] or served.resolved.rules.family != "famG":
            return None
        if alias is not None and alias.suffix is not None:
            return None
        return Resolved(served.resolved.model, served.resolved.rules, suffix, alias.alias if alias else "")

    def _resolved_aliases(self) -> Iterator[tuple[str, Resolved]]:
        """One that stands for nothing that is served is left out."""
        for alias, model in self._config.aliases.items():
            with suppress(UmgError):
                yield alias, replace(self.resolve(model), alias=alias)

    def _reachable(self, served: _Model, operation: Operation, wish: Wish) -> list[Target]:
        """The channels that can do it and that the key may reach, in no order of preference."""
        able = served.able.get(operation)
        if not able:
            raise _cannot(served, operation)
        if not wish.pins:
            return able
        reached = [target for target in able if allowed(wish.pins, target.channel.name)]
        if not reached:
            model = served.resolved.model.id
            message = f"none of the channels of this API key serves the model `{model}`; use another model or key"
            raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, model=model)
        return reached


def _cannot(served: _Model, operation: Operation) -> UmgError:
    can = [verb for known, verb in VERBS.items() if served.able[known]]
    does = f"; it can {' and '.join(can)}" if can else ""
    message = f"model: `{served.resolved.model.id}` cannot {VERBS.get(operation, 'do that')}{does}"
    return UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field="model")


def _reasons(target: Target, rank: Rank, wish: Wish, weights: int) -> Iterator[str]:
    """In the order in which they decide. `weights`: of all channels of the rank."""
    channel = target.channel
    if rank.unwell:
        yield "not well now"
    if not rank.stranger:
        yield "made what the call goes on from"
    yield f"priority {channel.priority}"
    if wish.protocol:
        spoken = ", ".join(channel.protocols)
        yield f"translated to {spoken}" if rank.foreign else f"speaks {wish.protocol}"
    if channel.name == wish.near:
        yield "served the conversation's beginning"
    if wish.affinity:
        yield "by affinity"
    if rank.spare:
        yield "no weight: after those that have one"
    elif channel.weight != weights:
        yield f"weight {channel.weight} of {weights}"


def model_not_found(model: str) -> UmgError:
    """What a caller is told of an id that is not served, or not to it: the two are not told apart."""
    named = model if len(model) <= LONGEST_ID else f"{model[:LONGEST_ID]}..."
    message = f"The model `{named}` does not exist or you do not have access to it."
    return UmgError(pb.ERROR_REASON_MODEL_NOT_FOUND, message, model=named)
