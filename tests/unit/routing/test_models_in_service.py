"""Models that their vendors have shut down: calls and lists."""

from datetime import UTC, datetime

import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.config import Config, parse
from umg_grpc.routing import Router
from umg_grpc.v1 import pb

VIDEO = pb.MODEL_OPERATION_CREATE_VIDEO
BEFORE, AFTER = datetime(2026, 9, 23, tzinfo=UTC), datetime(2026, 9, 24, tzinfo=UTC)
OPENAI = "{name: openai, protocols: [vidA], base_url: 'https://api.openai.com/v1', models: [sora-2, {id: film, upstream: sora-2}]}"
RELAY = "{name: relay, protocols: [vidA], base_url: 'https://relay.example/v1', models: [sora-2]}"


def config(*channels: str) -> Config:
    return parse(f"channels: [{', '.join(channels)}]", "umg.yaml", {})


def names(router: Router, model: str = "sora-2") -> list[str]:
    return [target.channel.name for target in router.channels(model, VIDEO)]


def test_a_model_is_called_until_its_vendor_shuts_it_down() -> None:
    clock = [BEFORE.timestamp()]
    router = Router(config(OPENAI), lambda: clock[0])
    assert names(router) == ["openai"]
    clock[0] = AFTER.timestamp()
    with pytest.raises(UmgError) as caught:
        names(router)
    assert caught.value.reason == pb.ERROR_REASON_MODEL_NOT_FOUND
    assert caught.value.message == "The model `sora-2` was shut down by its vendor on 2026-09-24."


def test_a_model_of_another_name_is_refused_by_that_name() -> None:
    with pytest.raises(UmgError) as caught:
        names(Router(config(OPENAI), AFTER.timestamp), "film")
    assert caught.value.message == "The model `film` was shut down by its vendor on 2026-09-24."


def test_a_retired_model_at_a_channel_without_its_operation_is_refused_as_retired() -> None:
    chat = "{name: chat, protocols: [chat], base_url: 'https://api.openai.com/v1', models: [sora-2]}"
    with pytest.raises(UmgError) as caught:
        names(Router(config(chat), AFTER.timestamp))
    assert caught.value.reason == pb.ERROR_REASON_MODEL_NOT_FOUND


def test_a_relay_serves_the_model_for_longer() -> None:
    assert names(Router(config(OPENAI, RELAY), AFTER.timestamp)) == ["relay"]
    assert names(Router(config(OPENAI, RELAY), BEFORE.timestamp)) == ["openai", "relay"]


def test_a_router_without_a_clock_calls_all_models() -> None:
    assert names(Router(config(OPENAI))) == ["openai"]


def test_the_list_of_models_has_the_time_of_a_retirement() -> None:
    found = {}
    for name, channels, now in (
        ("long before", [OPENAI], datetime(2026, 1, 1, tzinfo=UTC)),
        ("before", [OPENAI], BEFORE),
        ("after", [OPENAI], AFTER),
        ("with a relay", [OPENAI, RELAY], AFTER),
    ):
        described = Router(config(*channels), now.timestamp).resolve("sora-2").model.described
        found[name] = (
            described.lifecycle,
            described.retire_time.ToJsonString() if described.HasField("retire_time") else "",
        )
    time = "2026-09-24T00:00:00Z"
    assert found == {
        "long before": (pb.MODEL_LIFECYCLE_ACTIVE, time),
        "before": (pb.MODEL_LIFECYCLE_DEPRECATED, time),
        "after": (pb.MODEL_LIFECYCLE_RETIRED, time),
        "with a relay": (pb.MODEL_LIFECYCLE_ACTIVE, ""),
    }


def test_the_config_states_the_lifecycle_of_a_model() -> None:
    text = f"channels: [{OPENAI}]\nmodels: {{sora-2: {{retires: '2027-01-01', lifecycle: active}}, film: {{lifecycle: active}}}}"
    router = Router(parse(text, "umg.yaml", {}), AFTER.timestamp)
    described = {model: router.resolve(model).model.described for model in ("sora-2", "film")}
    assert {model: each.lifecycle for model, each in described.items()} == dict.fromkeys(
        described, pb.MODEL_LIFECYCLE_ACTIVE
    )
    assert described["sora-2"].retire_time.ToJsonString() == "2027-01-01T00:00:00Z"
