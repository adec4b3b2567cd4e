"""Models that keys may use: resolved once for a key, and again after a change of the key or of the config."""

from dataclasses import replace

import pytest

from umg_grpc.access.caller_identity import Caller
from umg_grpc.base.errors import UmgError
from umg_grpc.config import Channel, ChannelModel, Config
from umg_grpc.routing import GENERATE_VALUE, Router
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.pipeline.key_model_access import MAX_RESOLVED, ModelAccess
from umg_grpc.v1 import pb

ALL = Caller("key_1", "app", (), None, None)


def router(*models: str) -> Router:
    served = tuple(ChannelModel(model, model, None) for model in models)
    return Router(Config(channels=(Channel(name="a", protocols=("chat",), models=served),)))


def reason(access: ModelAccess, caller: Caller, name: str) -> int:
    with pytest.raises(UmgError) as refused:
        access.resolve(caller, name)
    return refused.value.reason


def test_a_model_is_resolved_once_for_a_key() -> None:
    access = ModelAccess(Channels(router("m")), GENERATE_VALUE)
    assert access.resolve(ALL, "m") is access.resolve(ALL, "m")


def test_a_changed_key_is_checked_again() -> None:
    access = ModelAccess(Channels(router("m")), GENERATE_VALUE)
    access.resolve(ALL, "m")
    assert reason(access, replace(ALL, model_patterns=("other",)), "m") == pb.ERROR_REASON_MODEL_NOT_FOUND
    access.resolve(ALL, "m")


def test_another_config_is_used_at_once() -> None:
    channels = Channels(router("m"))
    access = ModelAccess(channels, GENERATE_VALUE)
    access.resolve(ALL, "m")
    channels.replace(Channels(router("n")))
    assert reason(access, ALL, "m") == pb.ERROR_REASON_MODEL_NOT_FOUND
    assert access.resolve(ALL, "n").resolved.model.id == "n"


def test_the_only_channel_of_a_key_is_known_before_its_calls() -> None:
    served = (ChannelModel("m", "m", None),)
    two = Config(channels=tuple(Channel(name=name, protocols=("chat",), models=served) for name in ("a", "b")))
    access = ModelAccess(Channels(Router(two)), GENERATE_VALUE)
    assert access.resolve(ALL, "m").only_target is None
    only = access.resolve(replace(ALL, key_id="key_2", channels=("b",)), "m").only_target
    assert only is not None
    assert only.channel.name == "b"


def test_a_model_that_cannot_do_the_operation_is_refused_each_time() -> None:
    access = ModelAccess(Channels(router("m")), pb.MODEL_OPERATION_EMBED)
    assert [reason(access, ALL, "m") for _ in range(2)] == [pb.ERROR_REASON_UNSUPPORTED_FIELD] * 2


def test_the_memory_of_resolved_models_is_bounded() -> None:
    access = ModelAccess(Channels(router("m")), GENERATE_VALUE)
    for number in range(MAX_RESOLVED + 1):
        access.resolve(replace(ALL, key_id=f"key_{number}"), "m")
    assert len(access._resolved) <= MAX_RESOLVED


NAMES = ("gpt-5", "gpt-5-mini", "openrouter/anthropic/claude-opus-4.5", "llama-3", *(f"qwen-{n}" for n in range(500)))


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("gpt5", ["gpt-5"]),
        ("GPT-5-mni", ["gpt-5-mini"]),
        ("claude-opus-4.5", ["openrouter/anthropic/claude-opus-4.5"]),
        ("meta/llama-3", ["llama-3"]),
        ("qwen-4999", ["qwen-499"]),
        ("gemini", []),
        ("m", []),
        ("x" * 200, []),
    ],
)
def test_the_error_of_a_mistyped_model_names_the_nearest_ones(name: str, nearest: list[str]) -> None:
    with pytest.raises(UmgError) as refused:
        ModelAccess(Channels(router(*NAMES)), GENERATE_VALUE).resolve(ALL, name)
    hint = refused.value.message.partition(" Did you mean ")[2].removesuffix("?")
    assert hint.replace("`", "").split(" or ") == (nearest or [""])


def test_a_restricted_key_learns_of_no_other_model() -> None:
    with pytest.raises(UmgError) as refused:
        ModelAccess(Channels(router(*NAMES)), GENERATE_VALUE).resolve(replace(ALL, model_patterns=("llama-*",)), "gpt5")
    assert "gpt-5" not in refused.value.message
