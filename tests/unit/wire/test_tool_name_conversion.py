"""Names of tools: those sent to providers are legal and unique, and come back as the caller's own."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.laws import modest
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.provider_tool_names import tool_names as chat_names
from umg_grpc.wire.core.tool_name_conversion import OpenCalls, ToolName, ToolNames
from umg_grpc.wire.messages.provider_tool_names import tool_names as messages_names
from umg_grpc.wire.native.provider_tool_names import tool_names as native_names


@dataclass(frozen=True)
class Rule:
    id: str
    names: Callable[[pb.GenerateRequest], ToolNames]
    legal: str


RULES = [
    Rule("chat and responses", chat_names, r"[a-zA-Z0-9_-]{1,64}"),
    Rule("messages", messages_names, r"[a-zA-Z0-9_-]{1,128}"),
    Rule("native", native_names, r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"),
]
spellings = st.text("ab_. -9\u00e9", min_size=1, max_size=4) | st.integers(60, 130).map("x".__mul__)
tool_names = st.builds(ToolName, st.just("") | spellings, spellings)


def request_with(names: Sequence[ToolName]) -> pb.GenerateRequest:
    request = pb.GenerateRequest()
    for namespace, name in names:
        tool = request.tools.add()
        tool.function.name = name
        if namespace:
            tool.namespace.name = namespace
    return request


def call_of(name: ToolName) -> pb.ToolCall:
    return pb.ToolCall(namespace=name.namespace, name=name.name)


def resolved(names: ToolNames, sent: str) -> ToolName:
    call = pb.ToolCall(name=sent)
    assert not names.resolve(call)
    return ToolName(call.namespace, call.name)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
@modest
@given(st.lists(tool_names, unique=True, max_size=6), st.lists(tool_names, max_size=3))
def test_every_name_is_encoded_validly_and_decoded_back(
    rule: Rule, declared: list[ToolName], others: list[ToolName]
) -> None:
    names = rule.names(request_with(declared))
    sent = {name: names.of_call(call_of(name)) for name in [*declared, *others]}
    assert all(re.fullmatch(rule.legal, name) for name in sent.values())
    assert len(set(sent.values())) == len(sent)
    assert {name: resolved(names, legal) for name, legal in sent.items()} == {name: name for name in sent}
    assert all(sent[name] == name.name for name in declared if not name[0] and re.fullmatch(rule.legal, name.name))
    answered = rule.names(request_with(declared))  # as the response's decoder builds them
    assert [resolved(answered, sent[name]) for name in declared] == declared


def test_a_name_in_a_namespace_is_joined_and_may_be_chosen_alone() -> None:
    names = chat_names(request_with([ToolName("mcp__calc", "add"), ToolName("", "sub")]))
    assert names.of_call(pb.ToolCall(namespace="mcp__calc", name="add")) == "mcp__calc__add"
    assert (names.of_choice("add"), names.of_choice("sub")) == ("mcp__calc__add", "sub")


def test_a_name_alone_is_that_of_the_tool_without_a_namespace_else_of_the_first() -> None:
    names = chat_names(
        request_with([ToolName("a", "add"), ToolName("b", "add"), ToolName("c", "sub"), ToolName("", "sub")])
    )
    assert [names.of_choice(name) for name in ("add", "sub", "gone")] == ["a__add", "sub", "gone"]


def test_a_truncated_name_is_the_same_with_any_other_tools() -> None:
    long = ToolName("n" * 50, "f" * 50)
    alone = chat_names(request_with([long])).of_call(call_of(long))
    assert chat_names(request_with([ToolName("n" * 50, "f" * 49), long])).of_call(call_of(long)) == alone
    assert (len(alone), alone[:51]) == (64, "n" * 50 + "_")


@pytest.mark.parametrize("max_characters", [1, 64])
def test_names_that_become_equal_are_numbered(max_characters: int) -> None:
    """Check 10,000 equal names, because a body may have that many: numbering must not be slow."""
    alike = ["x" * (max_characters - 1) + chr(0x4E00 + index) for index in range(10_000)]
    names = chat_names(request_with([ToolName("", name) for name in alike]))
    sent = [names.of_choice(name) for name in alike]
    assert sent[:2] == ["x" * (max_characters - 1) + "_", ("x" * (max_characters - 1) + "_")[:62] + "_2"]
    assert len(set(sent)) == len(alike)
    assert max(map(len, sent)) == max(max_characters, 7)


def test_the_description_of_a_namespace_precedes_that_of_its_first_tool() -> None:
    request = request_with([ToolName("n", "f"), ToolName("n", "g")])
    for tool in request.tools:
        tool.namespace.description, tool.function.description = "Adds.", f"Runs {tool.function.name}."
    names = messages_names(request)
    assert [names.head(tool) for tool in request.tools] == [
        {"name": "n__f", "description": "n: Adds.\n\nRuns f."},
        {"name": "n__g", "description": "Runs g."},
    ]


def test_results_without_an_id_answer_the_open_calls_of_their_name_first() -> None:
    calls = OpenCalls()
    for name, call_id in (("f", "1"), ("g", "2"), ("f", "3")):
        calls.add(name, call_id)
    assert [calls.answered(name) for name in ("g", "f", "unknown", "f")] == ["2", "1", "3", ""]
