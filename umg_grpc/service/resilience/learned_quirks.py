"""Learned quirks: restrictions of providers' models that refusals have shown. They apply to later calls for a day. A
restriction is learned only after the changed request succeeded, which shows that the refused member was the cause.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

import msgspec
from msgspec import Struct

from umg_grpc.base.lazy_logger import LazyLogger
from umg_grpc.knowledge.model_quirk_definitions import ChannelQuirks, Quirks
from umg_grpc.routing import Target
from umg_grpc.wire.errors.rejection_adaptation import Mended

LIFETIME_SECONDS = 24 * 60 * 60.0
MAX_LEARNED = 1024
"""Maximum number of restrictions in memory; the ones learned first are removed."""

REFUSED_MEMBER = "a provider refuses a member of requests, which is left out or adapted for a day"
MISSING_PATH = "a provider serves nothing at the path of a protocol, which is not used for a day"

logger = LazyLogger(__name__)

Key = tuple[str, str, str, str, str]


class LearnedQuirk(Struct, frozen=True, kw_only=True):
    """Restriction of one provider's model in one wire format."""

    channel: str
    model: str
    """Model id of the provider."""
    protocol: str
    member: str
    """Member of the provider's body that was refused."""
    value_class: str = ""
    """Value or limit that was refused; "" for every value."""
    quirks: Quirks
    learn_time: float
    """Unix time."""

    @property
    def key(self) -> Key:
        """Identity of the restriction. A restriction with the same identity that is learned later replaces it."""
        return self.channel, self.model, self.protocol, self.member, self.value_class

    def stated(self) -> dict[str, object]:
        """Return the restriction as a config states it: name of the quirk -> value."""
        return {
            name: sorted(value) if isinstance(value, frozenset) else value
            for name in Quirks.__dataclass_fields__
            if (value := getattr(self.quirks, name)) is not None
        }

    def line(self) -> str:
        """Return the line of the config by which an operator would state the restriction for the channel."""
        if self.quirks.served is False:
            return f"remove {self.protocol} from its protocols"
        return f"quirks: {msgspec.json.encode(self.stated()).decode()}"


class LearnedQuirks:
    """Restrictions that this process has learned from refusals, by channel and model."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._learned = OrderedDict[Key, LearnedQuirk]()
        self._applied: dict[tuple[str, str], tuple[ChannelQuirks, ChannelQuirks, float]] = {}
        self._share: Callable[[LearnedQuirk], None] = lambda _: None

    def share_by(self, share: Callable[[LearnedQuirk], None]) -> None:
        """Call `share` with each restriction that is learned from now on, for the other processes of the gateway."""
        self._share = share

    def applied(self, target: Target) -> ChannelQuirks:
        """Return the quirks of a target with the restrictions that were learned for it."""
        if not self._learned or not target.channel.heal:
            return target.quirks
        place = target.channel.name, target.model
        if (known := self._applied.get(place)) is not None and known[0] is target.quirks and self._now() < known[2]:
            return known[1]
        quirks, end = target.quirks, float("inf")
        for learned in self.of(*place):
            quirks = quirks.restricted(learned.protocol, learned.quirks)
            end = min(end, learned.learn_time + LIFETIME_SECONDS)
        self._applied[place] = target.quirks, quirks, end
        return quirks

    def of(self, channel: str, model: str) -> list[LearnedQuirk]:
        """Return the restrictions that were learned for a channel and the provider's id of a model, oldest first."""
        return [each for each in self.all() if (each.channel, each.model) == (channel, model)]

    def all(self) -> list[LearnedQuirk]:
        """Return all restrictions that have not expired, the ones learned first in front."""
        oldest = self._now() - LIFETIME_SECONDS
        return [each for each in self._learned.values() if each.learn_time > oldest]

    def learn(self, target: Target, protocol: str, mended: Iterable[Mended]) -> None:
        """Store the restrictions under which a request succeeded. Log each new one as a line for the config."""
        for each in mended:
            if not each.lasting:
                continue
            learned = LearnedQuirk(
                channel=target.channel.name,
                model=target.model,
                protocol=protocol,
                member=each.member,
                value_class=each.value_class,
                quirks=each.quirks,
                learn_time=self._now(),
            )
            is_new = learned.key not in self._learned
            self.take([learned])
            self._share(learned)
            if is_new:
                logger.warning(
                    MISSING_PATH if learned.quirks.served is False else REFUSED_MEMBER,
                    channel=learned.channel,
                    upstream_model=learned.model,
                    protocol=protocol,
                    member=learned.member,
                    value=learned.value_class or None,
                    config=learned.line(),
                )

    def take(self, learned: Iterable[LearnedQuirk]) -> None:
        """Add restrictions, also of other processes. A later one replaces an earlier one with the same identity."""
        for each in learned:
            known = self._learned.get(each.key)
            if known is None or each.learn_time > known.learn_time:
                self._learned[each.key] = each
                self._learned.move_to_end(each.key)
                self._applied.pop((each.channel, each.model), None)
        while len(self._learned) > MAX_LEARNED:
            _, removed = self._learned.popitem(last=False)
            self._applied.pop((removed.channel, removed.model), None)

    def replace(self, learned: Iterable[LearnedQuirk]) -> None:
        """Replace all restrictions by `learned`, those in the database."""
        self._learned.clear()
        self._applied.clear()
        self.take(learned)
