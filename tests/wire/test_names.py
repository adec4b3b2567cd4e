"""Names of tools: what providers are told is legal, one to one, and comes back as the caller's own."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.wire.laws import modest
from umg_grpc.v1 import pb
from umg_grpc.wire.chat.names import tool_names as chat_names
from umg_grpc.wire.messages.names import tool_names as messages_names
from umg_grpc.wire.names import OpenCalls, ToolNames
from umg_grpc.wire.native.names import tool_names as native_names


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


def asked(names: list[str], source: str = "") -> pb.GenerateRequest:
    tools = [pb.Tool(function=pb.FunctionTool(name=name)) for name in names]
    return pb.GenerateRequest(tools=tools, source=pb.SourceDocument(format=source))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
@modest
@given(st.lists(spellings, unique=True, max_size=6), st.lists(spellings, max_size=3), st.sampled_from(["", "chat"]))
def test_every_name_is_told_legally_and_comes_back(
    rule: Rule, declared: list[str], others: list[str], source: str
) -> None:
    names = rule.names(asked(declared, source))
    told = {name: names.told(name) for name in [*declared, *others]}
    assert all(re.fullmatch(rule.legal, name) for name in told.values())
    assert len(set(told.values())) == len(told)
    assert {name: names.meant(legal) for name, legal in told.items()} == {name: name for name in told}
    assert all(told[name] == name for name in declared if re.fullmatch(rule.legal, name))
    answered = rule.names(asked(declared, source))  # as the decoder of the answer makes them
    assert [answered.meant(told[name]) for name in declared] == declared


def test_results_without_an_id_answer_the_open_calls_of_their_name_first() -> None:
    calls = OpenCalls()
    for name, call_id in (("f", "1"), ("g", "2"), ("f", "3")):
        calls.add(name, call_id)
    assert [calls.answered(name) for name in ("g", "f", "unknown", "f")] == ["2", "1", "3", ""]
