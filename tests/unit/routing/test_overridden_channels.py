"""Routing with overrides: disabled channels and other weights than those of the config."""

from dataclasses import dataclass

import pytest

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.config import Channel, ChannelModel, Config, parse
from umg_grpc.routing import GENERATE_VALUE, RoutePreferences, Router
from umg_grpc.routing.overridden_channels import (
    DISABLED_SETTING,
    WEIGHT_SETTING,
    ChannelOverride,
    ineffective_reason,
    overrides_by_setting,
    with_overrides,
)
from umg_grpc.v1 import pb

MODELS = (ChannelModel("m", "m", None), ChannelModel("n-*", "n-*", None))


def channels(*names: str, weight_place: str = "") -> tuple[Channel, ...]:
    return tuple(Channel(name=name, protocols=("chat",), models=MODELS, weight_place=weight_place) for name in names)


def override(channel: str, setting: str = DISABLED_SETTING, value: int = 1) -> ChannelOverride:
    return ChannelOverride(channel, setting, value, "", "user_1", "ada", 0)


def router(config: Config, *overrides: ChannelOverride) -> Router:
    return Router(with_overrides(config, overrides_by_setting(overrides)))


def first(found: Router, calls: int, model: str = "m") -> str:
    return "".join(found.channels(model)[0].channel.name for _ in range(calls))


def test_a_disabled_channel_gets_no_calls_of_exact_models_and_of_patterns() -> None:
    found = router(Config(channels=channels("a", "b")), override("a"))
    for model in ("m", "n-1"):
        assert [target.channel.name for target in found.channels(model)] == ["b"]
        assert [target.channel.name for target in found.targets(model)] == ["a", "b"]


def test_a_weight_holds_in_place_of_the_default() -> None:
    config = Config(channels=channels("a", "b", "c"))
    assert first(router(config, override("a", WEIGHT_SETTING, 5)), 7) == "aabacaa"
    assert first(router(config, override("a", WEIGHT_SETTING, 0)), 4) == "bcbc"


@dataclass(frozen=True)
class Refusal:
    id: str
    disabled: tuple[str, ...]
    pins: tuple[tuple[str, ...], ...]
    reason: "pb.ErrorReason.ValueType"


REFUSALS = [
    Refusal("all are disabled", ("a", "b"), (), pb.ERROR_REASON_UNAVAILABLE),
    Refusal("that of the key is disabled", ("a",), (("a",),), pb.ERROR_REASON_UNAVAILABLE),
    Refusal("the key has none", ("a", "b"), (("c",),), pb.ERROR_REASON_PERMISSION_DENIED),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_a_model_without_an_enabled_channel_is_unavailable(case: Refusal) -> None:
    found = router(Config(channels=channels("a", "b")), *map(override, case.disabled))
    with pytest.raises(UmgError) as caught:
        found.channels("m", GENERATE_VALUE, RoutePreferences(pins=case.pins))
    assert caught.value.reason == case.reason
    if case.reason == pb.ERROR_REASON_UNAVAILABLE:
        assert caught.value.failure is Failure.NOT_SENT  # so that the fallbacks of the model are called
        assert "disabled" in caught.value.message
        assert {each.channel.name for each in found.reachable("m", GENERATE_VALUE, case.pins)} <= set(case.disabled)


def test_a_model_whose_channels_are_disabled_stays_in_the_list_of_models() -> None:
    found = router(Config(channels=channels("a")), override("a"))
    assert [model.id for model in found.models()] == ["m"]


def test_an_unsupported_operation_is_named_also_where_a_channel_is_disabled() -> None:
    found = router(Config(channels=channels("a")), override("a"))
    with pytest.raises(UmgError) as caught:
        found.channels("m", pb.MODEL_OPERATION_EMBED)
    assert caught.value.reason == pb.ERROR_REASON_UNSUPPORTED_FIELD
    assert "it can generate" in caught.value.message


FILE = """
channels:
  - name: a
    protocols: [sandbox]
    models: [famO-5]
    weight: 3
  - {name: b, protocols: [sandbox], models: [famO-5]}
"""


def test_a_weight_of_the_config_is_fixed_and_named_with_its_line() -> None:
    config = parse(FILE, "/etc/umg/umg.yaml", {})
    assert [channel.weight_place for channel in config.channels] == ["umg.yaml:6", ""]
    found = with_overrides(
        config, overrides_by_setting([override("a", WEIGHT_SETTING, 9), override("b", WEIGHT_SETTING, 9)])
    )
    assert [channel.weight for channel in found.channels] == [3, 9]
    assert parse(f"# a comment\n{FILE}", "umg.yaml", {}) == config  # a moved line is no change of the config


def test_an_override_without_effect_has_a_reason() -> None:
    config = parse(FILE, "umg.yaml", {})
    reasons = [
        ineffective_reason(each, config.channels)
        for each in (override("a"), override("a", WEIGHT_SETTING), override("b", WEIGHT_SETTING), override("gone"))
    ]
    assert reasons == ["", "umg.yaml:6 states the weight", "", "the config has no channel of this name"]
