"""Which channel is tried for a model, and which after it."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from umg_grpc.config import Channel, ChannelModel, Config, ModelInfo
from umg_grpc.errors import UmgError
from umg_grpc.families import FamilyModel, Suffix
from umg_grpc.routing import PublicModel, Resolved, Router
from umg_grpc.v1 import pb


def channel(
    name: str, *, priority: int = 0, weight: int = 1, upstream: str = "m", family: str | None = None
) -> Channel:
    models = (ChannelModel("m", upstream, family),)
    return Channel(name=name, protocols=("chat",), models=models, priority=priority, weight=weight)


def names(router: Router) -> str:
    return "".join(target.channel.name for target in router.channels("m"))


def test_a_lower_priority_number_comes_first_whatever_the_weights() -> None:
    router = Router(Config(channels=(channel("c", priority=2, weight=99), channel("b", priority=1), channel("a"))))
    assert [names(router) for _ in range(3)] == ["abc"] * 3


def test_equal_priorities_take_turns_smoothly_by_weight() -> None:
    router = Router(Config(channels=(channel("a", weight=5), channel("b"), channel("c"))))
    assert "".join(names(router)[0] for _ in range(14)) == "aabacaa" * 2


def test_every_channel_is_in_every_answer_once() -> None:
    router = Router(
        Config(
            channels=tuple(channel(name, weight=weight) for name, weight in {"a": 3, "b": 2, "c": 7, "d": 0}.items())
        )
    )
    answers = [names(router) for _ in range(24)]
    assert all(sorted(answer) == list("abcd") for answer in answers)
    assert Counter(answer[0] for answer in answers) == {"a": 6, "b": 4, "c": 14}


def test_a_weight_of_zero_is_only_a_fallback() -> None:
    router = Router(Config(channels=(channel("z", weight=0), channel("a", weight=2), channel("b"))))
    assert {names(router)[-1] for _ in range(9)} == {"z"}
    alone = Router(Config(channels=(channel("z", weight=0), channel("y", weight=0))))
    assert [names(alone) for _ in range(3)] == ["zy"] * 3


def test_models_have_turns_of_their_own() -> None:
    both = (ChannelModel("m", "m", None), ChannelModel("n", "n", None))
    router = Router(Config(channels=tuple(replace(channel(name), models=both) for name in "ab")))
    assert names(router)[0] == "a"
    assert [target.channel.name for target in router.channels("n")] == ["a", "b"]
    assert names(router)[0] == "b"


def test_a_target_names_the_model_as_its_upstream_does() -> None:
    channels = (channel("a", upstream="real", family="famG"), channel("b"))
    router = Router(Config(channels=channels, models={"m": ModelInfo(family="famQ")}))
    assert [(target.model, target.family) for target in router.channels("m")] == [("real", "famG"), ("m", "famQ")]


def test_an_unknown_model_is_named_in_the_error() -> None:
    router = Router(Config(channels=(channel("a"),)))
    for ask in (router.channels, router.model):
        with pytest.raises(UmgError) as caught:
            ask("gpt-5")
        assert caught.value.reason == pb.ERROR_REASON_MODEL_NOT_FOUND
        assert caught.value.message == "The model `gpt-5` does not exist or you do not have access to it."
        assert caught.value.metadata == {"model": "gpt-5"}


def test_models_are_listed_as_the_operator_describes_them() -> None:
    released = datetime(2024, 11, 1, tzinfo=UTC)
    other = Channel(name="b", protocols=("local",), models=(ChannelModel("m", "x", None), ChannelModel("n", "n", None)))
    said = ModelInfo(owned_by="lab", display_name="M", create_time=released, family="famG", tokenizer="o200k_base")
    router = Router(Config(channels=(channel("a"), other), models={"m": said}))
    assert router.models() == (
        PublicModel("m", "lab", "M", released, "famG", ("chat", "local"), "o200k_base"),
        PublicModel("n", "b", "n", None, "", ("local",), None),
    )
    assert router.model("n") == router.models()[1]


def test_without_channels_there_are_no_models() -> None:
    assert Router(Config(channels=())).models() == ()


def serving(*ids: tuple[str, str, str | None], models: dict[str, ModelInfo] | None = None) -> Router:
    served = tuple(ChannelModel(model, upstream, family) for model, upstream, family in ids)
    return Router(Config(channels=(Channel(name="a", protocols=("chat",), models=served),), models=models or {}))


def test_an_id_that_is_configured_names_its_model() -> None:
    router = serving(("m", "m", None))
    assert router.resolve("m") == Resolved(router.model("m"), FamilyModel(), None)


@pytest.mark.parametrize(
    ("written", "suffix"),
    [
        ("famG-2.5-pro-thinking", Suffix("thinking")),
        ("famG-2.5-pro-thinking-2048", Suffix("budget", 2048)),
        ("famG-2.5-pro-nothinking", Suffix("nothinking")),
        ("famG-2.5-pro-thinking-low", Suffix("low")),
        ("famG-2.5-pro-thinking-high", Suffix("high")),
    ],
)
def test_readings_10_a_suffix_names_the_base_model(written: str, suffix: Suffix) -> None:
    router = serving(("famG-2.5-pro", "famG-2.5-pro", None))
    resolved = router.resolve(written)
    assert (resolved.model, resolved.suffix) == (router.model("famG-2.5-pro"), suffix)
    assert resolved.rules == FamilyModel("famG", levels=False, largest_budget=32768)


@pytest.mark.parametrize(
    "written",
    [
        *("famG-2.5-pro-thinking-medium", "famG-2.5-pro-thinking--1", "famG-2.5-pro-think", "famG-9-thinking"),
        *("famO-5-thinking", "mine-nothinking", "-thinking", ""),
    ],
)  # fmt: skip
def test_readings_10_what_is_no_suffix_of_a_famg_model_is_an_unknown_model(written: str) -> None:
    router = serving(("famG-2.5-pro", "x", None), ("famO-5", "famO-5", None), ("mine", "mine", None))
    with pytest.raises(UmgError) as caught:
        router.resolve(written)
    assert caught.value.reason == pb.ERROR_REASON_MODEL_NOT_FOUND
    assert caught.value.metadata == {"model": written}


def test_readings_10_an_id_configured_exactly_so_wins_over_its_suffix() -> None:
    router = serving(("famG-2.5-pro", "x", None), ("famG-2.5-pro-thinking", "y", None))
    resolved = router.resolve("famG-2.5-pro-thinking")
    assert (resolved.model.id, resolved.suffix) == ("famG-2.5-pro-thinking", None)
    assert router.resolve("famG-2.5-pro-thinking-low").model.id == "famG-2.5-pro"
    assert router.resolve("famG-2.5-pro-thinking-thinking").model.id == "famG-2.5-pro-thinking"


def test_an_operators_own_id_takes_suffixes_when_its_family_says_so() -> None:
    router = serving(
        ("smart", "gemini-3-pro", "famG"), ("clever", "g", None), models={"clever": ModelInfo(family="famG")}
    )
    assert router.resolve("smart-thinking-low").rules == FamilyModel("famG", levels=True)
    assert router.resolve("clever-nothinking").rules == FamilyModel("famG")


@pytest.mark.parametrize(
    ("model", "upstream", "said", "family"),
    [
        ("famQ-3-max", "q", None, "famQ"),
        ("mine", "famX-4", None, "famX"),
        ("famQ-3-max", "famX-4", None, "famQ"),
        ("famQ-3-max", "q", "famO", "famO"),
        ("gpt-5", "gpt-5", None, ""),
    ],
)
def test_a_model_without_a_family_has_the_one_of_its_prefix(
    model: str, upstream: str, said: str | None, family: str
) -> None:
    router = serving((model, upstream, said))
    assert [target.family for target in router.channels(model)] == [family]
    assert router.model(model).family == router.resolve(model).rules.family == family


def test_only_base_ids_are_listed() -> None:
    router = serving(("famG-2.5-pro", "famG-2.5-pro", None))
    router.resolve("famG-2.5-pro-thinking")
    assert [model.id for model in router.models()] == ["famG-2.5-pro"]
