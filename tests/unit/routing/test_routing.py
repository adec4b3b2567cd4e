"""Routing: the channels of a model in order, the operations that they support, and the model's description for callers."""

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.config import Channel, ChannelModel, Config, ModelInfo, parse
from umg_grpc.knowledge.families.text_model_rules import FamilyModel, Suffix
from umg_grpc.knowledge.model_catalogue import MODEL_CATALOGUE, describe
from umg_grpc.routing import GENERATE_VALUE, OPERATION_PROTOCOLS, ModelOperation, Resolved, Router
from umg_grpc.v1 import pb

EMBED, RERANK = pb.MODEL_OPERATION_EMBED, pb.MODEL_OPERATION_RERANK
TEXT = [pb.MODEL_OPERATION_GENERATE, pb.MODEL_OPERATION_COUNT_TOKENS]
ACTIVE = pb.MODEL_LIFECYCLE_ACTIVE


def channel(
    name: str, *, priority: int = 0, weight: int = 1, upstream: str = "m", family: str | None = None
) -> Channel:
    models = (ChannelModel("m", upstream, family),)
    return Channel(name=name, protocols=("chat",), models=models, priority=priority, weight=weight)


def names(router: Router) -> str:
    return "".join(target.channel.name for target in router.channels("m"))


def test_a_lower_priority_number_comes_first_regardless_of_weights() -> None:
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
    for look_up in (router.channels, router.resolve):
        with pytest.raises(UmgError) as caught:
            look_up("gpt-5")
        assert caught.value.reason == pb.ERROR_REASON_MODEL_NOT_FOUND
        assert caught.value.message == "The model `gpt-5` does not exist or you do not have access to it."
        assert caught.value.metadata == {"model": "gpt-5"}


def test_models_are_listed_as_the_operator_describes_them() -> None:
    released = datetime(2024, 11, 1, tzinfo=UTC)
    other = Channel(name="b", protocols=("chat",), models=(ChannelModel("m", "x", None), ChannelModel("n", "n", None)))
    settings = ModelInfo(owned_by="lab", display_name="M", create_time=released, family="famG", tokenizer="o200k_base")
    router = Router(Config(channels=(channel("a"), other), models={"m": settings}))
    first, second = router.models()
    assert (first.id, first.family, first.tokenizer) == ("m", "famG", "o200k_base")
    described_model = pb.Model(
        id="m", owned_by="lab", display_name="M", family="famG", operations=TEXT, formats=["chat"], lifecycle=ACTIVE
    )
    described_model.create_time.FromDatetime(released)
    assert first.described == described_model
    assert (second.id, second.family, second.tokenizer) == ("n", "", None)
    assert second.described == pb.Model(
        id="n", owned_by="b", display_name="n", operations=TEXT, formats=["chat"], lifecycle=ACTIVE
    )
    assert router.resolve("n").model == second


def test_without_channels_there_are_no_models() -> None:
    assert Router(Config(channels=())).models() == ()


def serving(*ids: tuple[str, str, str | None], models: dict[str, ModelInfo] | None = None) -> Router:
    served = tuple(ChannelModel(model, upstream, family) for model, upstream, family in ids)
    return Router(Config(channels=(Channel(name="a", protocols=("chat",), models=served),), models=models or {}))


def test_an_id_that_is_configured_names_its_model() -> None:
    router = serving(("m", "m", None))
    assert router.resolve("m") == Resolved(router.resolve("m").model, FamilyModel(), None)


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
    assert (resolved.model, resolved.suffix) == (router.resolve("famG-2.5-pro").model, suffix)
    assert resolved.rules == FamilyModel("famG", levels=False, largest_budget=32768)


@pytest.mark.parametrize(
    "written",
    [
        *("famG-2.5-pro-thinking-medium", "famG-2.5-pro-thinking--1", "famG-2.5-pro-think", "famG-9-thinking"),
        *("famO-5-thinking", "mine-nothinking", "-thinking", ""),
    ],
)  # fmt: skip
def test_readings_10_an_id_without_a_valid_famg_suffix_is_an_unknown_model(written: str) -> None:
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


def test_an_operators_own_id_takes_suffixes_when_its_family_has_them() -> None:
    router = serving(
        ("smart", "gemini-3-pro", "famG"), ("clever", "g", None), models={"clever": ModelInfo(family="famG")}
    )
    assert router.resolve("smart-thinking-low").rules == FamilyModel("famG", levels=True)
    assert router.resolve("clever-nothinking").rules == FamilyModel("famG")


@pytest.mark.parametrize(
    ("model", "upstream", "settings", "family"),
    [
        ("famQ-3-max", "q", None, "famQ"),
        ("mine", "famX-4", None, "famX"),
        ("famQ-3-max", "famX-4", None, "famQ"),
        ("famQ-3-max", "q", "famO", "famO"),
        ("gpt-5", "gpt-5", None, ""),
    ],
)
def test_a_model_without_a_family_has_the_one_of_its_prefix(
    model: str, upstream: str, settings: str | None, family: str
) -> None:
    router = serving((model, upstream, settings))
    assert [target.family for target in router.channels(model)] == [family]
    assert router.resolve(model).model.family == router.resolve(model).rules.family == family


def test_only_base_ids_are_listed() -> None:
    router = serving(("famG-2.5-pro", "famG-2.5-pro", None))
    router.resolve("famG-2.5-pro-thinking")
    assert [model.id for model in router.models()] == ["famG-2.5-pro"]


# --- operations of a model


def file(*channels: str, models: str = "") -> Router:
    """Return the router of a config whose channels are given in flow style, without name and, on the network, URL."""
    written = []
    for position, text in enumerate(channels):
        own = "[local]" in text or "[sandbox]" in text
        written.append(f"- {{name: c{position}, {text}{'' if own else ', base_url: http://host'}}}\n")
    return Router(parse(f"channels:\n{''.join(written)}models: {{{models}}}\n", "test.yaml", {}))


@dataclass(frozen=True)
class Able:
    """Channel, and the operations that it supports for its model `m` (or the one that the case names)."""

    id: str
    channel: str
    does: tuple[ModelOperation, ...]
    formats: str
    operations: str = ""
    """`operations` of the model."""
    model: str = "m"


TEXT_FORMATS = "chat responses messages native"
ABLE = [
    Able("a text provider", "protocols: [messages, chat], models: [m]", (GENERATE_VALUE,), "chat messages"),
    Able("an embedding provider", "protocols: [native_embeddings], models: [m]", (EMBED,), "native_embeddings"),
    Able("a ranking provider", "protocols: [rerank], models: [m]", (RERANK,), "rerank"),
    Able("a provider of everything", "protocols: [chat, embeddings, rerank], models: [m]", (GENERATE_VALUE, EMBED, RERANK), "chat embeddings rerank"),
    Able("one of its models that is known", "protocols: [chat, embeddings, rerank], models: [text-embedding-3-large]", (EMBED,), "embeddings", model="text-embedding-3-large"),
    Able("a known model by another name", "protocols: [chat, embeddings], models: [{id: m, upstream: famG-embedding-001}]", (EMBED,), "embeddings"),
    Able("another model by a known name", "protocols: [chat, embeddings], models: [{id: text-embedding-004, upstream: famO-5}]", (GENERATE_VALUE,), "chat", model="text-embedding-004"),
    Able("an unknown one by a known name", "protocols: [chat, embeddings], models: [{id: text-embedding-004, upstream: m}]", (EMBED,), "embeddings", model="text-embedding-004"),
    Able("a known name where it makes no sense", "protocols: [chat], models: [rerank-v1]", (GENERATE_VALUE,), "chat", model="rerank-v1"),
    Able("configured properties", "protocols: [chat, embeddings, rerank], models: [m]", (EMBED, RERANK), "embeddings rerank", operations="[embed, rerank]"),
    Able("configured properties of a known model", "protocols: [chat, embeddings], models: [famO-5]", (GENERATE_VALUE, EMBED), "chat embeddings", operations="[embed, generate]", model="famO-5"),
    Able("a simulated model", "protocols: [sandbox], models: [m]", (GENERATE_VALUE,), TEXT_FORMATS),
    Able("a simulated model of a known name", "protocols: [sandbox], models: [rerank-v1]", (RERANK,), "rerank", model="rerank-v1"),
    Able("a simulated model that plays a known one", "protocols: [sandbox], models: [{id: m, upstream: text-embedding-004}]", (EMBED,), "embeddings native_embeddings"),
    Able("a simulated model of a known name that plays another", "protocols: [sandbox], models: [{id: rerank-v1, upstream: famO-5}]", (GENERATE_VALUE,), TEXT_FORMATS, model="rerank-v1"),
    Able("a simulated model as the operator configured it", "protocols: [sandbox], models: [m]", (EMBED,), "embeddings native_embeddings", operations="[embed]"),
    Able("the local text model", "protocols: [local], models: [{id: m, upstream: smollm2-135m-instruct}]", (GENERATE_VALUE,), TEXT_FORMATS),
    Able("the local embedding model", "protocols: [local], models: [wordllama-256]", (EMBED,), "embeddings native_embeddings", model="wordllama-256"),
    Able("the local ranking model", "protocols: [local], models: [{id: m, upstream: wordllama-rerank}]", (RERANK,), "rerank"),
]  # fmt: skip


def with_count(operations: tuple[ModelOperation, ...]) -> list[ModelOperation]:
    """Return the operations in the order of the enum, with counting beside generation."""
    return sorted({*operations, *([pb.MODEL_OPERATION_COUNT_TOKENS] if GENERATE_VALUE in operations else [])})


@pytest.mark.parametrize("case", ABLE, ids=lambda case: case.id)
def test_a_channel_has_the_configured_else_the_known_else_all_operations_of_its_format(case: Able) -> None:
    router = file(
        case.channel,
        models=f"{case.model}: {{capabilities: {{operations: {case.operations}}}}}" if case.operations else "",
    )
    described = router.resolve(case.model).model.described
    assert list(described.operations) == with_count(case.does)
    assert list(described.formats) == case.formats.split()
    (target,) = router.targets(case.model)
    assert target.operations == set(described.operations)
    for operation in OPERATION_PROTOCOLS:
        if operation in described.operations:
            router.reachable(case.model, operation)
            assert router.channels(case.model, operation) == [target]


@dataclass(frozen=True)
class Unable:
    id: str
    channel: str
    operation: ModelOperation
    message: str


UNABLE = [
    Unable("text by an embedding model", "protocols: [embeddings], models: [m]", GENERATE_VALUE, "cannot generate text; it can embed texts"),
    Unable("vectors by a text model", "protocols: [chat], models: [m]", EMBED, "cannot embed texts; it can generate text"),
    Unable("a ranking by a text model", "protocols: [sandbox], models: [m]", RERANK, "cannot rerank documents; it can generate text"),
    Unable("text by a model of two minds", "protocols: [embeddings, rerank], models: [m]", GENERATE_VALUE, "cannot generate text; it can embed texts and rerank documents"),
]  # fmt: skip


@pytest.mark.parametrize("case", UNABLE, ids=lambda case: case.id)
def test_an_unsupported_operation_is_refused_with_the_supported_ones(case: Unable) -> None:
    router = file(case.channel)
    for look_up in (router.channels, router.reachable):
        with pytest.raises(UmgError) as caught:
            look_up("m", case.operation)
        assert (caught.value.reason, caught.value.metadata) == (pb.ERROR_REASON_UNSUPPORTED_FIELD, {"field": "model"})
        assert caught.value.message == f"model: `m` {case.message}"


def test_a_missing_model_is_unknown_for_every_operation() -> None:
    router = file("protocols: [chat], models: [m]")
    for operation in OPERATION_PROTOCOLS:
        for look_up in (router.channels, router.reachable):
            with pytest.raises(UmgError) as caught:
                look_up("n", operation)
            assert caught.value.reason == pb.ERROR_REASON_MODEL_NOT_FOUND


MIXED = (
    "protocols: [chat, embeddings], models: [m]",
    "protocols: [native_embeddings], priority: -1, models: [m]",
    "protocols: [messages], models: [m]",
    "protocols: [embeddings, rerank], weight: 2, models: [m]",
)


def order(router: Router, operation: ModelOperation) -> str:
    return " ".join(target.channel.name for target in router.channels("m", operation))


def test_only_channels_that_can_do_it_are_tried_and_each_operation_has_turns_of_its_own() -> None:
    router = file(*MIXED)
    assert [order(router, EMBED) for _ in range(3)] == ["c1 c3 c0", "c1 c0 c3", "c1 c3 c0"]
    assert [order(router, GENERATE_VALUE) for _ in range(3)] == ["c0 c2", "c2 c0", "c0 c2"]
    assert [order(router, RERANK) for _ in range(2)] == ["c3"] * 2
    assert order(router, GENERATE_VALUE) == "c2 c0"  # as if no text had been embedded in between


def test_a_model_has_the_operations_of_all_its_channels() -> None:
    router = file(*MIXED)
    described = router.resolve("m").model.described
    assert list(described.operations) == with_count((GENERATE_VALUE, EMBED, RERANK))
    assert list(described.formats) == ["chat", "messages", "embeddings", "native_embeddings", "rerank"]


def test_all_channels_of_a_model_are_named_by_priority() -> None:
    assert [target.channel.name for target in file(*MIXED).targets("m")] == ["c1", "c0", "c2", "c3"]


def test_a_channel_without_any_configured_operation_is_not_tried() -> None:
    router = file(*MIXED, models="m: {capabilities: {operations: [rerank]}}")
    assert [target.channel.name for target in router.targets("m") if target.operations] == ["c3"]
    assert list(router.resolve("m").model.described.formats) == ["rerank"]


def test_formats_are_those_in_which_each_channel_does_its_own_part() -> None:
    router = file("protocols: [sandbox], models: [{id: m, upstream: famO-5}]", "protocols: [embeddings], models: [m]")
    assert list(router.resolve("m").model.described.formats) == [*TEXT_FORMATS.split(), "embeddings"]


def test_a_suffix_is_for_models_that_generate() -> None:
    router = file("protocols: [sandbox], models: [famG-embedding-001]")
    with pytest.raises(UmgError) as caught:
        router.resolve("famG-embedding-001-thinking")
    assert caught.value.reason == pb.ERROR_REASON_MODEL_NOT_FOUND


# --- description of a model for callers


def described(channel: str, settings: str = "", model: str = "m") -> pb.Model:
    return file(channel, models=f"{model}: {{{settings}}}").resolve(model).model.described


FLASH = "protocols: [chat], models: [{id: m, upstream: famG-2.5-flash}]"
SMALL = "protocols: [embeddings], models: [{id: m, upstream: text-embedding-3-small}]"


def test_the_known_properties_of_the_providers_model_are_reported_for_the_public_one() -> None:
    known = MODEL_CATALOGUE["famG-2.5-flash"]
    described_model = described(FLASH)
    assert (described_model.id, described_model.family, described_model.owned_by, described_model.display_name) == (
        "m",
        "famG",
        "c0",
        "m",
    )
    assert described_model.capabilities.max_reasoning_tokens == 24_576  # as the rules of its family have it
    described_model.capabilities.ClearField("max_reasoning_tokens")
    assert described_model.capabilities == known.capabilities
    assert described_model.input_token_limit == known.input_token_limit
    assert not described_model.HasField("embedding")


def test_an_unknown_model_is_described_without_guesses() -> None:
    described_model = described("protocols: [embeddings, chat], models: [m]")
    assert described_model == pb.Model(
        id="m", owned_by="c0", display_name="m", operations=with_count((GENERATE_VALUE, EMBED)),
        formats=["chat", "embeddings"], lifecycle=ACTIVE,
    )  # fmt: skip


def test_configured_limits_leave_the_known_capabilities() -> None:
    described_model = described(FLASH, "capabilities: {input_tokens: 1000}")
    assert (described_model.input_token_limit, described_model.output_token_limit) == (1000, 65_536)
    assert described_model.capabilities == described(FLASH).capabilities


@pytest.mark.parametrize("settings", ["tools: false", "search: false", "inputs: []"])
def test_configured_capabilities_replace_all_of_them(settings: str) -> None:
    assert described(FLASH, f"capabilities: {{{settings}}}").capabilities == pb.ModelCapabilities()


def test_a_configured_list_replaces_the_known_one() -> None:
    described_model = described(FLASH, "capabilities: {inputs: [audio], outputs: [text], tools: true}").capabilities
    assert described_model == pb.ModelCapabilities(input_modalities=["audio"], output_modalities=["text"], tools=True)


def test_the_configured_lengths_replace_the_known_ones() -> None:
    assert described(SMALL).embedding == pb.ModelEmbedding(default_dimensions=1536, any_dimensions=True)
    described_model = described(SMALL, "capabilities: {dimensions: 512, other_dimensions: [256]}").embedding
    assert described_model == pb.ModelEmbedding(default_dimensions=512, dimensions=[256, 512])


def test_only_embedding_models_have_lengths() -> None:
    described_model = described("protocols: [chat], models: [m]", "capabilities: {dimensions: 512}")
    assert not described_model.HasField("embedding")


def test_prices_and_the_life_cycle_stage_are_reported_as_configured() -> None:
    described_model = described(
        FLASH, "lifecycle: deprecated, retires: 2026-12-31, price: {request: 5}, description: Old."
    )
    assert (described_model.lifecycle, described_model.description) == (pb.MODEL_LIFECYCLE_DEPRECATED, "Old.")
    assert described_model.retire_time.ToDatetime(UTC) == datetime(2026, 12, 31, tzinfo=UTC)
    assert list(described_model.prices) == [
        pb.Price(unit=pb.BILLABLE_UNIT_REQUEST, micro_credits_per_million=5 * 10**12)
    ]


def test_the_catalogue_is_as_it_was_after_all_that() -> None:
    before = pb.Model()
    before.CopyFrom(MODEL_CATALOGUE["famG-2.5-flash"])
    described(FLASH, "capabilities: {tools: false, operations: [generate], input_tokens: 5}, lifecycle: retired")
    assert MODEL_CATALOGUE["famG-2.5-flash"] == before
    assert describe("famG-2.5-flash") == before
