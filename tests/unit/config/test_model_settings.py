"""Entries of models in the config: each key as it is read, and as it is rejected."""

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from umg_grpc.config import ConfigError, ModelInfo, parse
from umg_grpc.v1 import pb

FILE = """\
channels:
- {name: a, protocols: [chat, embeddings], base_url: http://a, models: [m]}
models:
  m:
"""
FIRST = FILE.count("\n") + 1
"""Line on which the entry of `m` begins."""
GENERATE = (pb.MODEL_OPERATION_GENERATE, pb.MODEL_OPERATION_COUNT_TOKENS)


def model_info(text: str) -> ModelInfo:
    """Return the parsed entry of a model. `text`: its lines below its id."""
    return parse(FILE + "".join(f"    {line}\n" for line in text.splitlines()), "umg.yaml", {}).models["m"]


@dataclass(frozen=True)
class Described:
    id: str
    text: str
    kept: pb.Model


def capable(**fields: object) -> pb.Model:
    return pb.Model(capabilities=pb.ModelCapabilities(**fields))


def vectors(length: int, **fields: object) -> pb.Model:
    return pb.Model(embedding=pb.ModelEmbedding(default_dimensions=length, **fields))


MILLION = 1_000_000


def image_price(size: str, quality: str, micro_credits: int) -> pb.Price:
    return pb.Price(
        unit=pb.BILLABLE_UNIT_IMAGE, size=size, quality=quality, micro_credits_per_million=micro_credits * MILLION
    )


ENTRIES = [
    Described("nothing", "display_name: M", pb.Model()),
    Described("a description", "description: Answers well.", pb.Model(description="Answers well.")),
    Described("an active model", "lifecycle: active", pb.Model(lifecycle=pb.MODEL_LIFECYCLE_ACTIVE)),
    Described("a deprecated model", "lifecycle: deprecated", pb.Model(lifecycle=pb.MODEL_LIFECYCLE_DEPRECATED)),
    Described("a retired model", "lifecycle: retired", pb.Model(lifecycle=pb.MODEL_LIFECYCLE_RETIRED)),
    Described(
        "prices, one of them nothing",
        "price: {input_token: 250000, output_token: 1000000, search: 0}",
        pb.Model(
            prices=[
                pb.Price(unit=pb.BILLABLE_UNIT_INPUT_TOKEN, micro_credits_per_million=250_000),
                pb.Price(unit=pb.BILLABLE_UNIT_OUTPUT_TOKEN, micro_credits_per_million=1_000_000),
                pb.Price(unit=pb.BILLABLE_UNIT_SEARCH, micro_credits_per_million=0),
            ]
        ),
    ),
    Described(
        "prices in credits, exact to the micro-credit",
        "price: {input: 1.25, output: 10, cache_read: 0.000001, reasoning: 0}",
        pb.Model(
            prices=[
                pb.Price(unit=pb.BILLABLE_UNIT_INPUT_TOKEN, micro_credits_per_million=1_250_000),
                pb.Price(unit=pb.BILLABLE_UNIT_OUTPUT_TOKEN, micro_credits_per_million=10_000_000),
                pb.Price(unit=pb.BILLABLE_UNIT_CACHE_READ_TOKEN, micro_credits_per_million=1),
                pb.Price(unit=pb.BILLABLE_UNIT_REASONING_TOKEN, micro_credits_per_million=0),
            ]
        ),
    ),
    Described(
        "prices of one unit each, in credits",
        "price: {request: 0.002, search: 0.01, video: 1000000}",
        pb.Model(
            prices=[
                pb.Price(unit=pb.BILLABLE_UNIT_REQUEST, micro_credits_per_million=2 * 10**9),
                pb.Price(unit=pb.BILLABLE_UNIT_SEARCH, micro_credits_per_million=10**10),
                pb.Price(unit=pb.BILLABLE_UNIT_VIDEO, micro_credits_per_million=10**18),
            ]
        ),
    ),
    Described(
        "prices of images by size and quality",
        "price: {image: {1024*1024: {low: 0.01, HIGH: 0.2}, 2K: 0.1, any: {low: 0.02, any: 0.3}}, video_second: 0.4}",
        pb.Model(
            prices=[
                image_price("1024x1024", "low", 10_000),
                image_price("1024x1024", "high", 200_000),
                image_price("2k", "", 100_000),
                image_price("", "low", 20_000),
                image_price("", "", 300_000),
                pb.Price(unit=pb.BILLABLE_UNIT_VIDEO_SECOND, micro_credits_per_million=400_000 * MILLION),
            ]
        ),
    ),
    Described("no prices", "price: {}", pb.Model()),
    Described("no capabilities", "capabilities: {}", pb.Model()),
    Described("capabilities without values", "capabilities: {tools: , dimensions: }", pb.Model()),
    Described("text", "capabilities: {operations: [generate]}", pb.Model(operations=GENERATE)),
    Described(
        "vectors and text",
        "capabilities: {operations: [embed, generate]}",
        pb.Model(operations=[pb.MODEL_OPERATION_EMBED, *GENERATE]),
    ),
    Described(
        "limits alone, which leave the known properties",
        "capabilities: {input_tokens: 1000, output_tokens: 200}",
        pb.Model(input_token_limit=1000, output_token_limit=200),
    ),
    Described("its inputs and outputs", "capabilities: {inputs: [image, file], outputs: [text]}", capable(input_modalities=["image", "file"], output_modalities=["text"])),
    Described("tools", "capabilities: {tools: true, parallel_tools: true}", capable(tools=True, parallel_tools=True)),
    Described("no tools", "capabilities: {tools: false}", capable()),
    Described("no kind of input", "capabilities: {inputs: []}", capable()),
    Described("structured output and search", "capabilities: {structured_output: true, search: true}", capable(structured_output=True, search=True)),
    Described("a switch", "capabilities: {reasoning: switch}", capable(reasoning=pb.REASONING_CONTROL_SWITCH)),
    Described("a level", "capabilities: {reasoning: level}", capable(reasoning=pb.REASONING_CONTROL_LEVEL)),
    Described(
        "a budget and its most",
        "capabilities: {reasoning: budget, max_reasoning_tokens: 32768, min_cached_tokens: 1024}",
        capable(reasoning=pb.REASONING_CONTROL_BUDGET, max_reasoning_tokens=32768, min_cached_tokens=1024),
    ),
    Described("a length", "capabilities: {dimensions: 768}", vectors(768)),
    Described("any length", "capabilities: {dimensions: 768, other_dimensions: any}", vectors(768, any_dimensions=True)),
    Described("no other length", "capabilities: {dimensions: 768, other_dimensions: []}", vectors(768)),
    Described(
        "other lengths, also longer ones",
        "capabilities: {dimensions: 1024, other_dimensions: [2048, 256]}",
        vectors(1024, dimensions=[256, 1024, 2048]),
    ),
    Described(
        "task types",
        "capabilities: {dimensions: 8, task_types: [RETRIEVAL_QUERY]}",
        vectors(8, task_types=["RETRIEVAL_QUERY"]),
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", ENTRIES, ids=lambda case: case.id)
def test_the_configured_properties_of_a_model_are_kept(case: Described) -> None:
    assert model_info(case.text).described == case.kept


def test_a_switch_set_to_off_differs_from_an_unset_one() -> None:
    assert model_info("capabilities: {search: false}").described.HasField("capabilities")
    assert not model_info("capabilities: {input_tokens: 5}").described.HasField("capabilities")


def test_every_unit_may_have_a_price() -> None:
    units = {name.removeprefix("BILLABLE_UNIT_").lower(): value for name, value in pb.BillableUnit.items() if value}
    text = "price:\n" + "".join(f"  {unit}: {value}\n" for unit, value in units.items())
    prices = {price.unit: price.micro_credits_per_million for price in model_info(text).described.prices}
    factors = {value: 1 if unit.endswith("_token") else 10**12 for unit, value in units.items()}
    assert prices == {value: value * factors[value] for value in units.values()}


@pytest.mark.parametrize("written", ["2026-06-30", "2026-06-30T00:00:00Z", "2026-06-30T02:00+02:00", "1782777600"])
def test_the_day_on_which_a_model_ends_is_written_as_any_time(written: str) -> None:
    end = model_info(f"retires: {written}").described.retire_time
    assert end.ToDatetime(UTC) == datetime(2026, 6, 30, tzinfo=UTC)


def test_a_value_may_come_from_a_variable() -> None:
    text = f"{FILE}    price:\n      request: ${{PRICE}}\n    capabilities:\n      tools: ${{TOOLS}}\n      dimensions: ${{LENGTH}}\n"
    kept = parse(text, "umg.yaml", {"PRICE": "7", "TOOLS": "true", "LENGTH": "64"}).models["m"].described
    assert (kept.prices[0].micro_credits_per_million, kept.capabilities.tools) == (7 * 10**12, True)
    assert kept.embedding.default_dimensions == 64


def test_a_simulated_model_has_the_configured_capabilities() -> None:
    for own in ("local", "sandbox"):
        words = "models: {m: {capabilities: {operations: [generate, embed, rerank]}}}"
        config = parse(f"channels: [{{name: a, protocols: [{own}], models: [m]}}]\n{words}", "f", {})
        assert len(config.models["m"].described.operations) == 4


def test_calls_of_a_model_are_hedged_and_answers_cached_only_where_configured() -> None:
    assert (model_info("hedge: 0.5\ncache: 1h").hedge, model_info("hedge: 0.5\ncache: 1h").cache) == (0.5, 3600)
    assert (model_info("display_name: M").hedge, model_info("display_name: M").cache) == (None, None)


@dataclass(frozen=True)
class Mistake:
    id: str
    text: str
    expected: str
    """Path below the model's, and the expected value."""
    line: int = 1
    """Line within the entry."""


PRICE = "expected a whole number, the micro-credits that a million of them cost"
CREDITS = "expected a number such as 1.25, the credits that a million of them cost, with at most 6 decimals"
EACH = "expected a number such as 1.25, the credits that one costs, at most 1000000, with at most 6 decimals"
TIME = "expected a date (2024-11-01), an ISO 8601 time or Unix seconds"
WITHOUT = ".capabilities: expected `dimensions`, the length of a vector, beside the other keys"
MISTAKES = [
    Mistake("a description that is a list", "description: [a]", ".description: expected text or nothing, got a list"),
    Mistake("an unknown stage of life", "lifecycle: old", ".lifecycle: expected one of active, deprecated, retired"),
    Mistake("an end that is no time", "display_name: M\nretires: soon", f".retires: {TIME}", line=2),
    Mistake("an end beyond all calendars", "retires: 9999-12-31T23:59:59-05:00", f".retires: {TIME}"),
    Mistake("a price for everything", "price: 5", ".price: expected a mapping or nothing, got text"),
    Mistake(
        "an unknown unit",
        "price:\n  input_token: 1\n  tokens: 5",
        ".price.tokens: expected one of input, cache_read, cache_write, long_cache_write, output, reasoning, "
        "audio_input, audio_output, image_input, image_output, input_token, cache_read_token, cache_write_token, "
        "long_cache_write_token, output_token, reasoning_token, search, request, image, video_second, video, "
        "audio_input_token, audio_output_token, image_input_token, image_output_token, character, audio_second",
        line=3,
    ),
    *(
        Mistake(
            f"the price {price!r}", f"price:\n  request: 0\n  input_token: {price}", f".price.input_token: {PRICE}", line=3
        )
        for price in ("-1", "0.5", "1_000", "much", "", "[1]", "1" * 16)
    ),
    *(
        Mistake(f"the price {price!r} of an image", f"price:\n  request: 0\n  image: {price}", f".price.image: {EACH}", line=3)
        for price in ("-1", "0.0000001", "1000000.1", "much", "", "[1]", "{}")
    ),
    Mistake("a price of a call that is a mapping", "price:\n  request: {low: 1}", f".price.request: {EACH}", line=2),
    Mistake(
        "a price of a quality that is none",
        "price:\n  image:\n    1024x1024:\n      low: 0.1\n      high: much",
        f".price.image.1024x1024.high: {EACH}",
        line=5,
    ),
    Mistake(
        "a size in two spellings",
        "price:\n  image:\n    1024x1024: 0.1\n    1024*1024: 0.2",
        ".price.image.1024*1024: expected one price for a size and quality; these have another above",
        line=4,
    ),
    *(
        Mistake(f"the credits {price!r}", f"price:\n  input: 0\n  output: {price}", f".price.output: {CREDITS}", line=3)
        for price in ("-1", "1.0000001", "1.", ".5", "1e3", "1_000", "much", "", "[1]", "1" * 10)
    ),
    Mistake(
        "two prices of a unit",
        "price:\n  input: 1\n  input_token: 5",
        ".price.input_token: expected one price for a unit; this one has another above",
        line=3,
    ),
    Mistake("capabilities that are a list", "capabilities: [tools]", ".capabilities: expected a mapping or nothing, got a list"),
    Mistake(
        "a misspelt capability",
        "capabilities:\n  tools: true\n  serach: true",
        ".capabilities.serach: `serach` is not known here; did you mean `search`?",
        line=3,
    ),
    *(
        Mistake(f"a switch: {key}", f"capabilities: {{{key}: maybe}}", f".capabilities.{key}: expected true or false or nothing, got text")
        for key in ("tools", "parallel_tools", "structured_output", "search")
    ),
    *(
        Mistake(f"a count: {key}", f"capabilities:\n  {key}: 0", f".capabilities.{key}: expected a whole number >= 1", line=2)
        for key in ("max_reasoning_tokens", "min_cached_tokens", "input_tokens", "output_tokens", "dimensions")
    ),
    Mistake("a hedge at once", "hedge: 0", ".hedge: expected a number > 0.0"),
    Mistake("a hedge in words", "hedge: soon", ".hedge: expected a number or nothing, got text"),
    Mistake("a cache without time", "cache: 0", ".cache: expected a time like 30d, 12h, 15m or seconds, at most 3650d"),
    Mistake("too many tokens", "capabilities: {input_tokens: 2147483648}", ".capabilities.input_tokens: expected a whole number <= 2147483647"),
    Mistake("too long a vector", "capabilities: {dimensions: 65537}", ".capabilities.dimensions: expected a whole number <= 65536"),
    *(
        Mistake(f"a list: {key}", f"capabilities: {{{key}: image}}", f".capabilities.{key}: expected a list or nothing, got text")
        for key in ("operations", "inputs", "outputs", "task_types")
    ),
    Mistake("no operations", "capabilities: {operations: []}", ".capabilities.operations: expected a list of length >= 1"),
    Mistake(
        "an unknown operation",
        "capabilities:\n  operations:\n  - generate\n  - fly",
        ".capabilities.operations[1]: expected one of generate, embed, rerank, moderate, speech, transcribe, images, videos",
        line=4,
    ),
    Mistake(
        "an operation that no channel of the model speaks",
        "capabilities: {operations: [embed, rerank]}",
        ".capabilities.operations[1]: expected what a channel of the model can do; `rerank` takes a channel with rerank or bedrock_rerank",
    ),
    Mistake(
        "another way to reason",
        "capabilities: {reasoning: always}",
        ".capabilities.reasoning: expected one of switch, budget, level",
    ),
    *(
        Mistake(
            f"other lengths: {others}",
            f"capabilities:\n  dimensions: 5\n  other_dimensions: {others}",
            ".capabilities.other_dimensions: expected `any` or a list of lengths",
            line=3,
        )
        for others in ("some", "4")
    ),
    Mistake(
        "a length that is none among others",
        "capabilities: {dimensions: 5, other_dimensions: [4, 0]}",
        ".capabilities.other_dimensions[1]: expected a whole number >= 1",
    ),
    Mistake("other lengths than an unknown one", "capabilities: {other_dimensions: [5]}", WITHOUT),
    Mistake("task types without a length", "capabilities: {task_types: [CLUSTERING]}", WITHOUT),
]  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case.id)
def test_a_mistake_is_reported_with_its_line_and_the_expected_value(case: Mistake) -> None:
    with pytest.raises(ConfigError) as caught:
        model_info(case.text)
    assert str(caught.value) == f"umg.yaml:{FIRST + case.line - 1}: models.m{case.expected}"


def test_a_problem_of_a_channel_does_not_hide_a_problem_of_a_model() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(FILE.replace("a, protocols", "a b, protocols") + "    lifecycle: old\n", "umg.yaml", {})
    assert [problem.path for problem in caught.value.problems] == ["channels[0].name", "models.m.lifecycle"]
