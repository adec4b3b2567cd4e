"""Simulated answers: they follow from the prompt, state that they are simulated, and end at the limits."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.upstream.sandbox.asking import (
    MODEL,
    ask,
    assistant,
    called,
    count,
    deltas,
    function,
    hear,
    result,
    stream,
    text,
    user,
)
from tests.upstream.sandbox.documented import TEXT_MODELS
from tests.upstream.sandbox.validity import problems
from umg_grpc.v1 import pb

SCHEMA = (
    '{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city","days"]}'
)
THINKING = pb.ReasoningOptions(mode=pb.REASONING_MODE_ENABLED)
SEARCH = pb.Tool(web_search=pb.WebSearchTool())


def test_an_answer_says_that_it_is_simulated_and_what_was_asked() -> None:
    heard = hear(ask("What is the capital of France?"))
    assert "simulated" in heard.text
    assert "What is the capital of France?" in heard.text
    assert MODEL in heard.text
    assert (heard.finish, heard.kinds) == ("STOP", ["text"])
    assert heard.usage.input_tokens == count("What is the capital of France?")
    assert heard.usage.output_tokens == count(heard.text)


def test_an_answer_shows_that_instructions_and_earlier_turns_arrived() -> None:
    request = ask("My name is Ann.", assistant("Hi"), user("What is it?"), instructions=[text("Be brief.")])
    heard = hear(request)
    assert "Be brief." in heard.text
    assert "turn 2; you began with: My name is Ann." in heard.text


@pytest.mark.parametrize("role", [pb.ROLE_SYSTEM, pb.ROLE_DEVELOPER])
def test_instructions_sound_the_same_wherever_they_stood(role: "pb.Role.ValueType") -> None:
    inside = ask(pb.Message(role=role, parts=[text("Be brief.")]), "Hello")
    beside = ask("Hello", instructions=[text("Be brief.")])
    assert hear(inside).text == hear(beside).text


def test_another_prompt_has_another_answer_and_the_same_prompt_the_same() -> None:
    assert hear(ask("One thing")).text == hear(ask("One thing", temperature=1.5, seed=7)).text
    assert hear(ask("One thing")).text != hear(ask("Another thing")).text


@pytest.mark.parametrize("limit", [1, 2, 7, 20])
def test_the_limit_of_tokens_is_kept_exactly(limit: int) -> None:
    heard = hear(ask("Tell me a long story about a dragon", max_output_tokens=limit))
    assert (heard.finish, heard.usage.output_tokens) == ("LENGTH", limit)
    assert count(heard.text) == limit
    assert hear(ask("Tell me a long story about a dragon")).text.startswith(heard.text)


def test_a_limit_that_holds_the_whole_answer_does_not_end_it() -> None:
    whole = hear(ask("Hi"))
    heard = hear(ask("Hi", max_output_tokens=whole.usage.output_tokens))
    assert (heard.finish, heard.text) == ("STOP", whole.text)


def test_an_answer_stops_before_the_first_of_the_stop_sequences() -> None:
    heard = hear(ask("one two HALT three", stop_sequences=["three", "HALT"]))
    assert heard.text.endswith("one two ")
    assert (heard.finish, heard.response.candidates[0].stop_sequence) == ("STOP_SEQUENCE", "HALT")


def test_the_limit_counts_before_a_stop_sequence_that_lies_behind_it() -> None:
    heard = hear(ask("HALT", stop_sequences=["HALT"], max_output_tokens=3))
    assert (heard.finish, heard.response.candidates[0].stop_sequence) == ("LENGTH", "")


def test_as_many_answers_as_were_asked_for_each_another() -> None:
    heard = hear(ask("Hi", candidate_count=3))
    texts = [candidate.message.parts[0].text.text for candidate in heard.response.candidates]
    assert len(set(texts)) == 3
    assert [candidate.index for candidate in heard.response.candidates] == [0, 1, 2]
    assert heard.usage.output_tokens == sum(map(count, texts))


def test_likelihoods_cover_the_text() -> None:
    heard = hear(ask("Hi", logprobs=True, top_logprobs=3))
    entries = heard.parts[0].text.logprobs
    assert "".join(entry.token for entry in entries) == heard.text
    assert b"".join(entry.raw_bytes for entry in entries).decode() == heard.text
    assert all(entry.logprob < 0 and len(entry.alternatives) == 3 for entry in entries)
    assert all(entry.alternatives[0].token == entry.token for entry in entries)
    assert not hear(ask("Hi")).parts[0].text.logprobs


def test_json_is_an_object() -> None:
    made = json.loads(hear(ask("Say something", response_format=pb.ResponseFormat(json=pb.JsonFormat()))).text)
    assert made["simulated"] is True


def test_an_answer_fits_its_schema() -> None:
    described = pb.JsonSchemaFormat(schema_json=SCHEMA)
    heard = hear(ask("A trip to Rome for 4 days", response_format=pb.ResponseFormat(json_schema=described)))
    assert json.loads(heard.text) == {"city": "Rome", "days": 4}


def test_an_answer_fits_a_schema_of_the_native_subset() -> None:
    schema = '{"type":"OBJECT","properties":{"a":{"type":"ARRAY","items":{"type":"INTEGER"},"minItems":3},"b":{"type":"STRING","nullable":true}},"required":["a","b"]}'
    described = pb.JsonSchemaFormat(schema_json=schema, native_schema=True)
    made = json.loads(hear(ask("Hi", response_format=pb.ResponseFormat(json_schema=described))).text)
    plain = re.sub('"[A-Z]+"', lambda found: found[0].lower(), schema)
    assert list(problems(made, json.loads(plain))) == []


def test_an_enum_is_answered_with_one_bare_value() -> None:
    described = pb.JsonSchemaFormat(schema_json='{"type":"STRING","enum":["good","bad"]}', native_schema=True)
    heard = hear(ask("That was really bad", response_format=pb.ResponseFormat(enum_text=described)))
    assert heard.text == "bad"


def test_every_documented_model_answers_and_so_does_any_other() -> None:
    for model in [*TEXT_MODELS, "gpt-4o"]:
        assert f"plays {model}," in hear(ask("Hi"), model).text


pieces = st.text("ab 😀\n\u2028é[]", max_size=40)
requests = st.builds(
    ask,
    st.lists(pieces, min_size=1, max_size=2).map(lambda texts: user(*texts)),
    source=st.sampled_from(["", "chat", "responses", "messages", "native"]),
    max_output_tokens=st.none() | st.integers(1, 60),
    stop_sequences=st.lists(st.sampled_from(["a", "plays", "\n", "😀"]), max_size=2),
    candidate_count=st.none() | st.integers(1, 3),
    reasoning=st.none() | st.just(THINKING) | st.just(pb.ReasoningOptions(effort="high", summary="detailed")),
    tools=st.lists(st.sampled_from([SEARCH, function("a", SCHEMA), function("b")]), max_size=3),
    logprobs=st.booleans(),
    top_logprobs=st.sampled_from([None, 2]),
    response_format=st.none() | st.just(pb.ResponseFormat(json_schema=pb.JsonSchemaFormat(schema_json=SCHEMA))),
    output_modalities=st.sampled_from([[], ["text"], ["text", "image"], ["image"]]),
    image_output=st.just(pb.ImageOutputOptions(image_size="0.5K")),
)


@settings(max_examples=150, deadline=None)
@given(requests)
def test_a_stream_tells_exactly_the_unstreamed_answer(request: pb.GenerateRequest) -> None:
    assert stream(request).response == hear(request).response


@settings(max_examples=100, deadline=None)
@given(requests)
def test_the_usage_is_the_exact_sum(request: pb.GenerateRequest) -> None:
    heard = hear(request)
    assert heard.usage.reasoning_tokens <= heard.usage.output_tokens
    spoken = heard.usage.reasoning_tokens + heard.usage.image_output_tokens
    for candidate in heard.response.candidates:
        for part in candidate.message.parts:
            call = part.tool_call
            spoken += count(part.text.text) + (count(f"{call.name} {call.arguments_json}") if call.name else 0)
    assert heard.usage.output_tokens == spoken
    if request.max_output_tokens:
        assert heard.usage.output_tokens <= request.max_output_tokens * (request.candidate_count or 1)


def test_text_thoughts_and_arguments_come_in_several_pieces() -> None:
    request = ask("use lookup for Rome and Oslo", tools=[function("lookup", SCHEMA)], reasoning=THINKING)
    calling = stream(request).messages
    assert len(deltas(calling, "reasoning_delta")) > 3
    assert len(deltas(calling, "arguments_delta")) > 1
    assert len(deltas(stream(ask("Hi")).messages, "text_delta")) > 10


def test_a_stream_tells_the_tokens_of_the_prompt_first() -> None:
    events = [event for message in stream(ask("Hello there")).messages for event in message.events]
    assert [event.WhichOneof("kind") for event in events[:2]] == ["started", "usage"]
    assert (events[1].usage.input_tokens, events[1].usage.output_tokens) == (count("Hello there"), 0)


def test_a_stop_sequence_is_told_in_the_stream() -> None:
    [finished] = deltas(stream(ask("Hi", stop_sequences=["simulated"])).messages, "finished")
    assert finished.finished.stop_sequence == "simulated"


def test_what_a_tool_gave_is_in_the_answer() -> None:
    history = [user("weather?"), assistant(called("sky", "c1"), called("sea", "c2"))]
    heard = hear(ask(*history, user(result("18 degrees", "c1"), result("calm\nand blue", "c2"))))
    assert "The tool sky gave: 18 degrees" in heard.text
    assert "The tool sea gave: calm\nand blue" in heard.text


def test_only_results_of_the_last_turn_are_told() -> None:
    history = [user("weather?"), assistant(called("sky")), user(result("18 degrees")), assistant("18"), user("thanks")]
    assert "18 degrees" not in hear(ask(*history)).text
