"""Router: finds the model for the id in a request, and the model's channels in the order in which a call tries them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

from umg_grpc.base.errors import UmgError
from umg_grpc.config import Config
from umg_grpc.config.channel_section import OPERATION_PROTOCOLS
from umg_grpc.config.model_index import ModelIndex
from umg_grpc.knowledge.families.text_model_rules import split_suffix
from umg_grpc.knowledge.model_id_spellings import DEFAULT_TAG
from umg_grpc.operations import OPERATIONS_BY_VALUE, ModelOperation
from umg_grpc.routing.caller_visible_models import PublicModel, Resolved, public_model, rules_of
from umg_grpc.routing.channel_order import ANY_ROUTE, Pins, Rank, RoundRobin, RoutePreferences, allowed, ordered
from umg_grpc.routing.channel_target import GENERATE_VALUE, Target, target_of
from umg_grpc.routing.overridden_channels import all_disabled, disabled_targets
from umg_grpc.routing.retired_model_removal import day_of, in_service, retired
from umg_grpc.routing.unknown_model_names import letters_of, model_not_found
from umg_grpc.v1 import pb

OPERATION_VERBS: Mapping[ModelOperation, str] = {
    value: row.verb for value, row in OPERATIONS_BY_VALUE.items() if row.verb
}
MAX_PATTERN_MODELS = 1024
"""Maximum number of cached ids that match only a pattern of the config; the least recently used are dropped first."""


class Explained(NamedTuple):
    """A channel, and the reasons for its position in the order of a call, as phrases for operators ("priority 1")."""

    target: Target
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class _Model:
    """Routing data of one model id: the public model and its channels."""

    resolved: Resolved
    targets: Sequence[Target]
    """All channels that serve the model, in the order of the config."""
    able: Mapping[ModelOperation, list[Target]]
    """Operation -> channels that calls may use: the ones that support it and are not disabled."""
    round_robins: defaultdict[ModelOperation, RoundRobin]
    shared: frozenset[str]
    """Formats of channels with `shared_objects` in the config: all callers may refer to objects in their accounts."""
    retires: bool
    """Whether any vendor rejects calls of the model, now or from an announced date."""


class Router:
    """Resolver of model ids and order of channels of one config. Not thread-safe: `channels` updates round-robins."""

    def __init__(self, config: Config, now: Callable[[], float] | None = None) -> None:
        """Index the models of a config, which may have no channels. `now`: returns Unix seconds; models that their
        vendors have shut down by then are not called. Without `now` they are.
        """
        self._config = config
        self._now = now
        self._ids = ModelIndex(config.channels)
        self._round_robins: defaultdict[str, defaultdict[ModelOperation, RoundRobin]] = defaultdict(
            lambda: defaultdict(RoundRobin)
        )
        self._pattern_models: dict[str, _Model] = {}
        # config.models too: a pattern may serve a model that the config describes
        named = dict.fromkeys((*self._ids.exact(), *config.models))
        self._exact = {model: served for model in named if (served := self._serve(model)) is not None}
        self._aliases: dict[str, Resolved] = {}
        self._aliases = dict(self._resolved_aliases())
        self._names: list[tuple[str, str]] | None = None
        models = (served.resolved.model for served in self._exact.values())
        self._models = tuple(model for model in models if model.described.operations)

    def resolve(self, model: str) -> Resolved:
        """Return the model for the id in a request: an exact id in the config, else an alias, else a famG id or alias
        with a suffix, else an id that matches a channel's pattern. If nothing matches, the default tag is added or
        removed. Raise UmgError(MODEL_NOT_FOUND) for any other id, including one with an unknown suffix.
        """
        if (found := self._named(model)) is None and (other := _with_other_tag(model)):
            found = self._named(other)
        if found is None:
            found = self._resolve_suffix(model)
        if found is None and (served := self._served(model)) is not None:
            found = served.resolved
        if found is None and model.endswith(DEFAULT_TAG) and model != DEFAULT_TAG:
            return self.resolve(model.removesuffix(DEFAULT_TAG))
        if found is None:
            raise model_not_found(model)
        return found

    def _named(self, model: str) -> Resolved | None:
        if (exact := self._exact.get(model)) is not None:
            return exact.resolved
        return self._aliases.get(model)

    def channels(
        self, model: str, operation: ModelOperation = GENERATE_VALUE, preferences: RoutePreferences = ANY_ROUTE
    ) -> list[Target]:
        """Return the channels that can serve a call, best first; never empty. `model`: id without alias and suffix.
        Raise UmgError: MODEL_NOT_FOUND, UNSUPPORTED_FIELD if no channel supports the operation, PERMISSION_DENIED if
        the key may use none of the channels that support it (`preferences.pins`), UNAVAILABLE if all are disabled.
        """
        served, targets = self._reachable(model, operation, preferences)
        if len(targets) == 1:
            return targets
        return [target for target, _ in ordered(targets, preferences, served.round_robins[operation].take)]

    def explain(
        self, model: str, operation: ModelOperation = GENERATE_VALUE, preferences: RoutePreferences = ANY_ROUTE
    ) -> list[Explained]:
        """Return the channels that the next call of `channels` would return, in its order, each with the reasons for
        its position. The round-robin does not advance. Raise UmgError as `channels` does.
        """
        served, targets = self._reachable(model, operation, preferences)
        order = list(ordered(targets, preferences, served.round_robins[operation].peek))
        weights = Counter[Rank]()
        for target, rank in order:
            weights[rank] += target.channel.weight
        return [Explained(target, tuple(_reasons(target, rank, preferences, weights[rank]))) for target, rank in order]

    def reachable(self, model: str, operation: ModelOperation, pins: Pins = ()) -> list[Target]:
        """Return the channels that support the operation and that a key may use, in the order of the config; never
        empty: if all of them are disabled, these. `pins`: of the key. Raise UmgError as `channels` does.
        """
        preferences = RoutePreferences(pins=pins) if pins else ANY_ROUTE
        _, targets = self._reachable(model, operation, preferences, or_disabled=True)
        return targets

    def reaches(self, model: str, pins: Pins, operations: frozenset[ModelOperation] | None = None) -> bool:
        """Return whether a key may use a channel that serves the model for at least one of the operations (None: all).
        Raise UmgError(MODEL_NOT_FOUND), except for a key without restrictions (then True).
        """
        if not pins and operations is None:
            return True
        return any(
            allowed(pins, target.channel.name) and (operations is None or not operations.isdisjoint(target.operations))
            for target in self._require(model).targets
        )

    def has_several(self, model: str) -> bool:
        """Return whether more than one channel serves the model, for any operation. Raise UmgError(MODEL_NOT_FOUND)."""
        return len(self._require(model).targets) > 1

    def targets(self, model: str) -> list[Target]:
        """Return all channels of the model, sorted by priority, smallest first. Raise UmgError(MODEL_NOT_FOUND)."""
        return sorted(self._require(model).targets, key=lambda target: target.channel.priority)

    def shares(self, model: str, protocol: str) -> bool:
        """Return whether a channel that serves the model in the format `protocol` has `shared_objects` in the config.
        Every caller may then refer to objects in the provider's account (files, responses) by their ids. False for an
        unknown model.
        """
        served = self._served(model)
        return served is not None and protocol in served.shared

    def models(self) -> tuple[PublicModel, ...]:
        """Return the models for model lists, in config order. A model that only a pattern serves is included if the
        config has properties for it. A model without a channel that can be called is left out.
        """
        return self._models

    def aliases(self) -> Mapping[str, Resolved]:
        """Return alias -> model that it refers to, without the aliases of models that no channel serves."""
        return self._aliases

    def names(self) -> Sequence[tuple[str, str]]:
        """Return pairs (normalised name, name) of all models and aliases, to find names similar to a mistyped one. A
        normalised name has only letters and digits, in lower case.
        """
        if self._names is None:
            self._names = [(letters_of(name), name) for name in (*self._exact, *self._aliases)]
        return self._names

    def _require(self, model: str) -> _Model:
        if (served := self._served(model)) is None:
            raise model_not_found(model)
        return served

    def _served(self, model: str) -> _Model | None:
        """Return the routing data of a model id without alias and suffix; None if no channel serves it."""
        if (served := self._exact.get(model)) is not None:
            return served
        if (served := self._pattern_models.pop(model, None) or self._serve(model)) is not None:
            self._pattern_models[model] = served
            if len(self._pattern_models) > MAX_PATTERN_MODELS:
                del self._pattern_models[next(iter(self._pattern_models))]
        return served

    def _serve(self, model: str) -> _Model | None:
        """Build the routing data of a model id without alias and suffix; None if no channel serves it."""
        if (found := self._ids.find(model)) is None:
            return None
        targets = [target_of(self._config, channel, way) for channel, way in found.ways]
        enabled = [target for target in targets if not target.channel.disabled]
        public = public_model(self._config, model, targets, day_of(self._now))
        return _Model(
            Resolved(public, rules_of(model, public.family, targets), suffix=None),
            targets,
            {done: [each for each in enabled if each.supports(done)] for done in OPERATION_PROTOCOLS},
            # the ids of a pattern share their round-robin state: most of them are rarely called
            self._round_robins[found.written],
            frozenset(chain.from_iterable(way.protocols for way, _ in found.ways if way.shared_objects)),
            any(target.retirement is not None and target.retirement.refused for target in targets),
        )

    def _resolve_suffix(self, model: str) -> Resolved | None:
        """Return the model for a famG id or alias followed by a suffix; None for any other id."""
        if (split := split_suffix(model)) is None:
            return None
        base, suffix = split
        alias, served = self._aliases.get(base), self._exact.get(base)
        if served is None:
            served = self._served(alias.model.id if alias is not None else base)
        if served is None or not served.able[GENERATE_VALUE] or served.resolved.rules.family != "famG":
            return None
        if alias is not None and alias.suffix is not None:
            return None
        return Resolved(served.resolved.model, served.resolved.rules, suffix, alias.alias if alias else "")

    def _resolved_aliases(self) -> Iterator[tuple[str, Resolved]]:
        for alias, model in self._config.aliases.items():
            with suppress(UmgError):
                yield alias, replace(self.resolve(model), alias=alias)

    def _reachable(
        self, model: str, operation: ModelOperation, preferences: RoutePreferences, *, or_disabled: bool = False
    ) -> tuple[_Model, list[Target]]:
        """Return a model's routing data, and the channels that the key may use, ordered by config. `or_disabled`: if
        all of them are disabled, return these, which is an error otherwise. Raise UmgError.
        """
        served = self._exact.get(model) or self._require(model)
        able = served.able.get(operation)
        if served.retires and (today := day_of(self._now)) is not None:
            able = in_service(able or (), today)
            if not able and not in_service(served.targets, today):
                raise retired(served.resolved.model.id, served.targets, today)
        if able and not preferences.pins:
            return served, able
        reached = [target for target in able or () if allowed(preferences.pins, target.channel.name)]
        if reached:
            return served, reached
        disabled = disabled_targets(served.targets, operation)
        if not able and not disabled:
            raise _unsupported_operation(served, operation)
        disabled = [target for target in disabled if allowed(preferences.pins, target.channel.name)]
        if not disabled:
            message = f"none of the channels of this API key serves the model `{model}`; use another model or key"
            raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, model=model)
        if or_disabled:
            return served, disabled
        raise all_disabled(model)


def _with_other_tag(model: str) -> str:
    if model.endswith(DEFAULT_TAG):
        return model.removesuffix(DEFAULT_TAG)
    return "" if ":" in model else model + DEFAULT_TAG


def _unsupported_operation(served: _Model, operation: ModelOperation) -> UmgError:
    can = [verb for known, verb in OPERATION_VERBS.items() if any(each.supports(known) for each in served.targets)]
    does = f"; it can {' and '.join(can)}" if can else ""
    message = f"model: `{served.resolved.model.id}` cannot {OPERATION_VERBS.get(operation, 'do that')}{does}"
    return UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field="model")


def _reasons(target: Target, rank: Rank, preferences: RoutePreferences, weights: int) -> Iterator[str]:
    """Yield the reasons for a channel's position as phrases for operators ("priority 1"), most important first."""
    channel = target.channel
    if rank.unhealthy:
        yield "circuit breaker open"
    if not rank.not_state_channel:
        yield "made the state that the call continues"
    yield f"priority {channel.priority}"
    if preferences.protocol:
        formats = ", ".join(channel.protocols)
        yield f"translated to {formats}" if rank.needs_translation else f"supports {preferences.protocol}"
    if preferences.affinity:
        yield "by affinity"
    if rank.has_zero_weight:
        yield "no weight: after the channels that have one"
    elif channel.weight != weights:
        yield f"weight {channel.weight} of {weights}"
