"""Order of a model's channels, and its reasons."""

from collections import Counter
from dataclasses import dataclass

import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.config import Channel, ChannelModel, Config, parse
from umg_grpc.routing import ANY_ROUTE, GENERATE_VALUE, ModelOperation, RoutePreferences, Router, Target
from umg_grpc.routing.channel_order import MAX_ROUND_ROBINS, RoundRobin
from umg_grpc.v1 import pb


def router(*channels: str) -> Router:
    """Return the router of channels of the model `m`, each given as its name and its other keys in flow style."""
    lines = []
    for text in channels:
        name, _, more = text.partition(" ")
        protocols = "" if "protocols" in more else ", protocols: [chat]"
        lines.append(f"- {{name: {name}, base_url: http://a, models: [m]{protocols}{more and ', '}{more}}}")
    return Router(parse("channels:\n" + "\n".join(lines), "test.yaml", {}))


def order(made: Router, preferences: RoutePreferences = ANY_ROUTE, operation: ModelOperation = GENERATE_VALUE) -> str:
    return "".join(target.channel.name for target in made.channels("m", operation, preferences))


def all_healthy_but(*names: str) -> RoutePreferences:
    return RoutePreferences(is_healthy=lambda target: target.channel.name not in names)


@dataclass(frozen=True)
class Order:
    id: str
    channels: tuple[str, ...]
    preferences: RoutePreferences
    order: str


SPREAD = ("a priority: 0", "b priority: 1", "c priority: 1, weight: 0", "d priority: 1, protocols: [messages]")
ORDERS = [
    Order("nothing wished", SPREAD, ANY_ROUTE, "abdc"),
    Order("the caller's own format first, inside its priority", SPREAD, RoutePreferences(protocol="messages"), "adbc"),
    Order("a format without a channel", SPREAD, RoutePreferences(protocol="native"), "abdc"),
    Order("an open circuit breaker last, regardless of priority", SPREAD, all_healthy_but("a"), "bdca"),
    Order("several open circuit breakers, in their usual order", SPREAD, all_healthy_but("a", "d"), "bcad"),
    Order("all circuit breakers open", SPREAD, all_healthy_but(*"abcd"), "abdc"),
    Order("the maker before priority", SPREAD, RoutePreferences(state_channel="c"), "cabd"),
    Order("the channel of the state after all healthy ones", SPREAD, RoutePreferences(state_channel="a", is_healthy=all_healthy_but("a", "b").is_healthy), "dcab"),
    Order("a maker that is no channel of it", SPREAD, RoutePreferences(state_channel="x"), "abdc"),
    Order("pins", SPREAD, RoutePreferences(pins=(("d", "b"),)), "bd"),
    Order("a pin with a star", ("eu-1", "us-1", "eu-2"), RoutePreferences(pins=(("eu-*",),)), "eu-1eu-2"),
    Order("a pin that leaves one", SPREAD, RoutePreferences(pins=(("c", "x"),)), "c"),
    Order("a maker that is not pinned", SPREAD, RoutePreferences(pins=(("b", "d"),), state_channel="a"), "bd"),
]  # fmt: skip


@pytest.mark.parametrize("case", ORDERS, ids=lambda case: case.id)
def test_channels_are_called_in_the_requested_order(case: Order) -> None:
    made = router(*case.channels)
    assert (
        "".join(each.target.channel.name for each in made.explain("m", GENERATE_VALUE, case.preferences)) == case.order
    )
    assert order(made, case.preferences) == case.order


def test_a_key_whose_channels_do_not_serve_the_model_is_refused() -> None:
    made = router("a", "b")
    preferences = RoutePreferences(pins=(("c", "b?"),))
    for look_up in (
        lambda: made.channels("m", GENERATE_VALUE, preferences),
        lambda: made.explain("m", GENERATE_VALUE, preferences),
        lambda: made.reachable("m", GENERATE_VALUE, preferences.pins),
    ):
        with pytest.raises(UmgError) as caught:
            look_up()
        assert (caught.value.reason, caught.value.metadata) == (pb.ERROR_REASON_PERMISSION_DENIED, {"model": "m"})
        assert "none of the channels of this API key serves the model `m`" in caught.value.message
    assert [made.reaches("m", pins) for pins in ((), (("a",),), (("*",),), preferences.pins)] == [
        True,
        True,
        True,
        False,
    ]


def test_pins_are_held_against_the_channels_that_can_do_it() -> None:
    made = router("a", "b protocols: [embeddings]")
    assert order(made, RoutePreferences(pins=(("b",),)), pb.MODEL_OPERATION_EMBED) == "b"
    with pytest.raises(UmgError) as caught:
        made.reachable("m", GENERATE_VALUE, ("b",))
    assert caught.value.reason == pb.ERROR_REASON_PERMISSION_DENIED


def firsts(made: Router, calls: int, preferences: RoutePreferences = ANY_ROUTE) -> dict[str, int]:
    return dict(Counter(order(made, preferences)[0] for _ in range(calls)))


def test_shares_stay_right_while_one_is_left_out_and_when_it_is_back() -> None:
    made = router("a weight: 5", "b weight: 3", "c weight: 2")
    assert firsts(made, 100) == {"a": 50, "b": 30, "c": 20}
    assert firsts(made, 80, all_healthy_but("c")) == {"a": 50, "b": 30}
    assert firsts(made, 70, RoutePreferences(pins=(("a", "c"),))) == {"a": 50, "c": 20}
    assert firsts(made, 10) == {"a": 5, "b": 3, "c": 2}  # the channel that was unhealthy does not catch up


def test_each_set_of_channels_has_its_shares_however_the_calls_mix() -> None:
    made, wishes = (
        router("a weight: 2", "b", "c"),
        (ANY_ROUTE, all_healthy_but("b"), RoutePreferences(pins=(("b", "c"),))),
    )
    counted = Counter(
        (order(made, preferences)[0], position) for _ in range(60) for position, preferences in enumerate(wishes)
    )
    assert [counted["a", 0], counted["b", 0], counted["c", 0]] == [30, 15, 15]
    assert [counted["a", 1], counted["c", 1]] == [40, 20]
    assert [counted["b", 2], counted["c", 2]] == [30, 30]


def test_the_turns_of_many_sets_of_channels_take_no_more_room_than_those_of_some() -> None:
    names = [f"c{number}" for number in range(12)]
    made, turns = router(*names), RoundRobin()
    targets = made.targets("m")
    for bits in range(1, 2 ** len(names)):
        turns.take([target for at, target in enumerate(targets) if bits >> at & 1])
    assert len(turns._credits) == MAX_ROUND_ROBINS


def test_each_priority_has_turns_of_its_own() -> None:
    made = router("a", "b priority: 1", "c priority: 1")
    assert [order(made) for _ in range(3)] == ["abc", "acb", "abc"]


def test_those_of_the_callers_own_format_take_turns_among_themselves() -> None:
    made, preferences = router("a", "b protocols: [messages]", "c"), RoutePreferences(protocol="chat")
    assert [order(made, preferences) for _ in range(3)] == ["acb", "cab", "acb"]


TEXTS = [b"conversation %d" % number for number in range(4000)]


def homes(made: Router, preferences: RoutePreferences = ANY_ROUTE) -> list[str]:
    return [order(made, RoutePreferences(affinity=text, is_healthy=preferences.is_healthy))[0] for text in TEXTS]


def test_calls_of_one_text_have_one_channel_and_all_texts_their_shares() -> None:
    made = router("a weight: 5", "b weight: 3", "c weight: 2")
    found = homes(made)
    assert found == homes(made) == homes(router("c weight: 2", "b weight: 3", "a weight: 5"))
    counted = Counter(found)
    assert all(abs(counted[name] / len(TEXTS) - share) < 0.03 for name, share in (("a", 0.5), ("b", 0.3), ("c", 0.2)))
    assert firsts(made, 10) == {"a": 5, "b": 3, "c": 2}  # the round robin did not advance


def test_a_channel_that_is_left_out_moves_only_its_own_texts() -> None:
    made = router("a", "b", "c")
    before, without = homes(made), homes(made, all_healthy_but("c"))
    assert {(old, new) for old, new in zip(before, without, strict=True) if old != new} == {("c", "a"), ("c", "b")}


def test_affinity_ends_at_priority_and_at_the_callers_own_format() -> None:
    made = router("a priority: 1", "b protocols: [messages]", "c")
    assert {order(made, RoutePreferences(affinity=text))[-1] for text in TEXTS[:50]} == {"a"}
    assert {order(made, RoutePreferences(affinity=text, protocol="chat")) for text in TEXTS[:50]} == {"cba"}


@dataclass(frozen=True)
class Reasons:
    id: str
    preferences: RoutePreferences
    reasons: tuple[str, ...]
    """Reason of each channel, joined."""


REASONS = [
    Reasons("nothing wished", ANY_ROUTE, ("priority 0, weight 3 of 4", "priority 0, weight 1 of 4", "priority 0, no weight: after the channels that have one", "priority 1")),
    Reasons("a format", RoutePreferences(protocol="messages"), ("priority 0, supports messages", "priority 0, translated to chat", "priority 0, translated to chat, no weight: after the channels that have one", "priority 1, translated to chat")),
    Reasons("all at once", RoutePreferences(state_channel="d", affinity=b"x", is_healthy=all_healthy_but("a").is_healthy), ("made the state that the call continues, priority 1, by affinity", "priority 0, by affinity", "priority 0, by affinity, no weight: after the channels that have one", "circuit breaker open, priority 0, by affinity")),
]  # fmt: skip


@pytest.mark.parametrize("case", REASONS, ids=lambda case: case.id)
def test_each_position_has_its_reasons(case: Reasons) -> None:
    made = router("a weight: 3", "b protocols: [messages]", "c weight: 0", "d priority: 1")
    assert (
        tuple(", ".join(each.reasons) for each in made.explain("m", GENERATE_VALUE, case.preferences)) == case.reasons
    )


def test_explaining_moves_no_turn() -> None:
    made = router("a", "b")
    assert ["".join(each.target.channel.name for each in made.explain("m")) for _ in range(3)] == ["ab"] * 3
    assert [order(made) for _ in range(2)] == ["ab", "ba"]


def test_a_target_is_called_with_its_upstream_model() -> None:
    called = []

    def well(target: Target) -> bool:
        called.append((target.channel.name, target.model))
        return True

    channels = [
        Channel(name=name, protocols=("chat",), models=(ChannelModel("m", f"{name}-m", None),)) for name in "ab"
    ]
    Router(Config(channels=tuple(channels))).channels("m", GENERATE_VALUE, RoutePreferences(is_healthy=well))
    assert called == [("a", "a-m"), ("b", "b-m")]
