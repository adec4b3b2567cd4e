"""Simulated answers: they follow from the prompt, state that they are simulated, and end at the limits."""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.umg_sandbox.documented import TEXT_MODELS
from tests.unit.umg_sandbox.sandbox_calls import (
    MODEL,
    assistant,
    called,
    count,
    deltas,
    function,
    generate,
    make_request,
    result,
    stream,
    text,
    user,
)
from tests.unit.umg_sandbox.validity import problems
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS

SCHEMA = (
    '{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city","days"]}'
)
THINKING = pb.ReasoningOptions(mode=pb.REASONING_MODE_ENABLED)
SEARCH = pb.Tool(web_search=pb.WebSearchTool())


def test_an_answer_contains_a_note_that_it_is_simulated_and_the_prompt() -> None:
    answer = generate(make_request("What is the capital of France?"))
    assert "simulated" in answer.text
    assert "What is the capital of France?" in answer.text
    assert MODEL in answer.text
    assert (answer.finish, answer.kinds) == ("STOP", ["text"])
    assert answer.usage.input_tokens == count("What is the capital of France?")
    assert answer.usage.output_tokens == count(answer.text)


def test_an_answer_repeats_the_instructions_and_the_earlier_turns() -> None:
    request = make_request("My name is Ann.", assistant("Hi"), user("What is it?"), instructions=[text("Be brief.")])
    answer = generate(request)
    assert "Be brief." in answer.text
    assert "turn 2; you began with: My name is Ann." in answer.text


@pytest.mark.parametrize("role", [pb.ROLE_SYSTEM, pb.ROLE_DEVELOPER])
def test_instructions_have_the_same_effect_in_messages_and_in_their_own_field(role: "pb.Role.ValueType") -> None:
    inside = make_request(pb.Message(role=role, parts=[text("Be brief.")]), "Hello")
    beside = make_request("Hello", instructions=[text("Be brief.")])
    assert generate(inside).text == generate(beside).text


def test_equal_prompts_have_equal_answers_and_other_prompts_other_answers() -> None:
    assert generate(make_request("One thing")).text == generate(make_request("One thing", temperature=1.5, seed=7)).text
    assert generate(make_request("One thing")).text != generate(make_request("Another thing")).text


@pytest.mark.parametrize("limit", [1, 2, 7, 20])
def test_an_answer_ends_exactly_at_the_token_limit(limit: int) -> None:
    answer = generate(make_request("Tell me a long story about a dragon", max_output_tokens=limit))
    assert (answer.finish, answer.usage.output_tokens) == ("LENGTH", limit)
    assert count(answer.text) == limit
    assert generate(make_request("Tell me a long story about a dragon")).text.startswith(answer.text)


def test_a_limit_equal_to_the_length_of_the_answer_does_not_cut_it() -> None:
    unlimited = generate(make_request("Hi"))
    answer = generate(make_request("Hi", max_output_tokens=unlimited.usage.output_tokens))
    assert (answer.finish, answer.text) == ("STOP", unlimited.text)


def test_an_answer_stops_before_the_first_of_the_stop_sequences() -> None:
    answer = generate(make_request("one two HALT three", stop_sequences=["three", "HALT"]))
    assert answer.text.endswith("one two ")
    assert (answer.finish, answer.response.candidates[0].stop_sequence) == ("STOP_SEQUENCE", "HALT")


def test_the_token_limit_applies_before_a_later_stop_sequence() -> None:
    answer = generate(make_request("HALT", stop_sequences=["HALT"], max_output_tokens=3))
    assert (answer.finish, answer.response.candidates[0].stop_sequence) == ("LENGTH", "")


def test_each_requested_candidate_has_a_different_answer() -> None:
    answer = generate(make_request("Hi", candidate_count=3))
    texts = [candidate.message.parts[0].text.text for candidate in answer.response.candidates]
    assert len(set(texts)) == 3
    assert [candidate.index for candidate in answer.response.candidates] == [0, 1, 2]
    assert answer.usage.output_tokens == sum(map(count, texts))


def test_the_logprobs_cover_the_whole_text() -> None:
    answer = generate(make_request("Hi", logprobs=True, top_logprobs=3))
    entries = answer.parts[0].text.logprobs
    assert "".join(entry.token for entry in entries) == answer.text
    assert b"".join(entry.raw_bytes for entry in entries).decode() == answer.text
    assert all(entry.logprob < 0 and len(entry.alternatives) == 3 for entry in entries)
    assert all(entry.alternatives[0].token == entry.token for entry in entries)
    assert not generate(make_request("Hi")).parts[0].text.logprobs


def test_json_is_an_object() -> None:
    made = json.loads(
        generate(make_request("Say something", response_format=pb.ResponseFormat(json=pb.JsonFormat()))).text
    )
    assert made["simulated"] is True


def test_an_answer_fits_its_schema() -> None:
    described = pb.JsonSchemaFormat(schema_json=SCHEMA)
    answer = generate(
        make_request("A trip to Rome for 4 days", response_format=pb.ResponseFormat(json_schema=described))
    )
    assert json.loads(answer.text) == {"city": "Rome", "days": 4}


def test_an_answer_fits_a_schema_of_the_native_subset() -> None:
    schema = '{"type":"OBJECT","properties":{"a":{"type":"ARRAY","items":{"type":"INTEGER"},"minItems":3},"b":{"type":"STRING","nullable":true}},"required":["a","b"]}'
    described = pb.JsonSchemaFormat(schema_json=schema, native_schema=True)
    made = json.loads(generate(make_request("Hi", response_format=pb.ResponseFormat(json_schema=described))).text)
    plain = re.sub('"[A-Z]+"', lambda found: found[0].lower(), schema)
    assert list(problems(made, json.loads(plain))) == []


def test_an_enum_is_answered_with_one_bare_value() -> None:
    described = pb.JsonSchemaFormat(schema_json='{"type":"STRING","enum":["good","bad"]}', native_schema=True)
    answer = generate(make_request("That was really bad", response_format=pb.ResponseFormat(enum_text=described)))
    assert answer.text == "bad"


def test_every_documented_model_answers_and_so_does_any_other() -> None:
    for model in [*TEXT_MODELS, "gpt-4o"]:
        assert f"plays {model}," in generate(make_request("Hi"), model).text


pieces = st.text("ab 😀\n\u2028é[]", max_size=40)
requests = st.builds(
    make_request,
    st.lists(pieces, min_size=1, max_size=2).map(lambda texts: user(*texts)),
    source=st.sampled_from(["", *TEXT_FORMATS]),
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
def test_a_stream_aggregates_to_the_unstreamed_answer(request: pb.GenerateRequest) -> None:
    assert stream(request).response == generate(request).response


@settings(max_examples=100, deadline=None)
@given(requests)
def test_the_usage_is_the_exact_sum(request: pb.GenerateRequest) -> None:
    answer = generate(request)
    assert answer.usage.reasoning_tokens <= answer.usage.output_tokens
    total_output = answer.usage.reasoning_tokens + answer.usage.image_output_tokens
    for candidate in answer.response.candidates:
        for part in candidate.message.parts:
            call = part.tool_call
            total_output += count(part.text.text) + (count(f"{call.name} {call.arguments_json}") if call.name else 0)
    assert answer.usage.output_tokens == total_output
    if request.max_output_tokens:
        assert answer.usage.output_tokens <= request.max_output_tokens * (request.candidate_count or 1)


def test_text_reasoning_and_arguments_are_streamed_in_several_deltas() -> None:
    request = make_request("use lookup for Rome and Oslo", tools=[function("lookup", SCHEMA)], reasoning=THINKING)
    calling = stream(request).messages
    assert len(deltas(calling, "reasoning_delta")) > 3
    assert len(deltas(calling, "arguments_delta")) > 1
    assert len(deltas(stream(make_request("Hi")).messages, "text_delta")) > 10


def test_a_stream_begins_with_the_tokens_of_the_prompt() -> None:
    events = [event for message in stream(make_request("Hello there")).messages for event in message.events]
    assert [event.WhichOneof("kind") for event in events[:2]] == ["started", "usage"]
    assert (events[1].usage.input_tokens, events[1].usage.output_tokens) == (count("Hello there"), 0)


def test_a_stream_ends_with_the_stop_sequence_that_was_found() -> None:
    [finished] = deltas(stream(make_request("Hi", stop_sequences=["simulated"])).messages, "finished")
    assert finished.finished.stop_sequence == "simulated"


def test_the_result_of_a_tool_is_in_the_answer() -> None:
    history = [user("weather?"), assistant(called("sky", "c1"), called("sea", "c2"))]
    answer = generate(make_request(*history, user(result("18 degrees", "c1"), result("calm\nand blue", "c2"))))
    assert "The tool sky gave: 18 degrees" in answer.text
    assert "The tool sea gave: calm\nand blue" in answer.text


def test_only_tool_results_of_the_last_turn_are_in_the_answer() -> None:
    history = [user("weather?"), assistant(called("sky")), user(result("18 degrees")), assistant("18"), user("thanks")]
    assert "18 degrees" not in generate(make_request(*history)).text
