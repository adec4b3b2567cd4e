"""Bodies in the messages and the responses of vendors that have them beside their chat: each reaches its vendor in the
format in which it came, with the members that the vendor refuses left out or moved, and named.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.pairs.vendors import sources
from tests.pairs.vendors.gateway import Model, send
from tests.pairs.vendors.judge import refusal
from tests.pairs.vendors.refusal import Json
from tests.world.sdk.runner import installed_or_skipped

FLASH = Model("deepseek", "deepseek-flash")
CODE = Model("moonshot", "kimi-k2.7-code")
TOOL: Json = {"name": "read", "description": "Read a file", "input_schema": {"type": "object", "properties": {}}}
TYPED = {"type": "custom", **TOOL}
CALL: Json = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}
RESULT: Json = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "21"}
CALLED: list[Json] = [
    {"role": "user", "content": "Read it."},
    {"role": "assistant", "content": [CALL]},
    {"role": "user", "content": [RESULT]},
]
BLANK: Json = {"type": "thinking", "thinking": "", "signature": ""}
BUDGET: Json = {"type": "enabled", "budget_tokens": 2048}
WIRE = Path(__file__).parents[2] / "unit" / "wire"
AGENTS = {
    "messages": sorted(WIRE.glob("messages/claude_code*/request.json")),
    "responses": sorted(WIRE.glob("responses/codex*/request.json")),
}
"""Face -> requests that coding agents sent."""
VENDORS = [
    FLASH,
    CODE,
    Model("moonshot", "kimi-k3"),
    Model("minimax", "MiniMax-M3"),
    Model("dashscope", "qwen3.8-max"),
    Model("groq", "groq/openai/gpt-oss-120b", "openai/gpt-oss-120b"),
    Model("xai", "grok-4.3"),
    Model("ark", "doubao-seed-2-1-pro-260915"),
]
AGENT_USER = '{"device_id":"d1","account_uuid":"","session_id":"s1"}'
INSTRUCTION: Json = {"role": "system", "content": "Answer only BLUE."}


@dataclass(frozen=True)
class Case:
    """Body of a caller, the members that are sent, and the changes that are named."""

    id: str
    model: Model
    body: Json
    sent: Json
    """Members of the body that is sent; null for an absent one."""
    dropped: dict[str, str | None] = field(default_factory=dict)
    face: str = "messages"


CASES = [
    Case("the type of a function", FLASH, {"tools": [TYPED, TOOL]}, {"tools": [TOOL, TOOL]}),
    Case(
        "an own tool of the vendor",
        FLASH,
        {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
    ),
    Case(
        "calls without their reasoning",
        FLASH,
        {"messages": CALLED},
        {"messages": [CALLED[0], {"role": "assistant", "content": [BLANK, CALL]}, CALLED[2]]},
        {"messages.reasoning": "blank"},
    ),
    Case(
        "calls of a conversation without reasoning",
        FLASH,
        {"messages": CALLED, "thinking": {"type": "disabled"}},
        {"messages": CALLED},
    ),
    Case(
        "any of one tool",
        FLASH,
        {"tools": [TOOL], "tool_choice": {"type": "any"}},
        {"tool_choice": {"type": "tool", "name": "read"}, "thinking": {"type": "disabled"}},
    ),
    Case(
        "any of several tools",
        FLASH,
        {"tools": [TOOL, TOOL | {"name": "write"}], "tool_choice": {"type": "any"}},
        {"tool_choice": {"type": "auto"}, "thinking": None},
        {"tool_choice": "auto"},
    ),
    Case("a plain user", FLASH, {"metadata": {"user_id": "user_1-a"}}, {"metadata": {"user_id": "user_1-a"}}),
    Case(
        "no reasoning, by the effort",
        FLASH,
        {"reasoning": {"effort": "none"}},
        {"reasoning": {"effort": "none"}},
        face="responses",
    ),
    Case(
        "a budget of reasoning that no source refuses",
        Model("moonshot", "kimi-k3"),
        {"max_tokens": 9000, "thinking": BUDGET},
        {"thinking": BUDGET},
    ),
    Case(
        "a budget of another vendor",
        Model("zai", "glm-5.2"),
        {"max_tokens": 9000, "thinking": BUDGET},
        {"thinking": BUDGET},
    ),
    Case(
        "a budget where thinking is adaptive",
        Model("minimax", "MiniMax-M3"),
        {"max_tokens": 9000, "thinking": BUDGET},
        {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "low"}},
        {"thinking.budget_tokens": "effort low"},
    ),
    Case(
        "adaptive thinking where it is enabled alone",
        CODE,
        {"max_tokens": 9000, "thinking": {"type": "adaptive"}},
        {"thinking": {"type": "enabled", "budget_tokens": 4500}},
        {"thinking.type": "enabled"},
    ),
    Case(
        "a named tool where any is accepted",
        CODE,
        {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "read"}},
        {"tool_choice": {"type": "any"}},
    ),
    Case(
        "members that the vendor lacks",
        Model("groq", "groq/openai/gpt-oss-120b"),
        {"prompt_cache_key": "k", "safety_identifier": "s", "include": ["reasoning.encrypted_content"]},
        {"prompt_cache_key": None, "safety_identifier": None, "include": None},
        {"prompt_cache_key": None, "safety_identifier": None, "include": None},
        "responses",
    ),
]


@pytest.fixture(autouse=True, scope="module")
def sources_installed() -> None:
    """Skip the tests where the cost map or the walked SDK cannot be downloaded."""
    installed_or_skipped(sources.cost_map)
    installed_or_skipped(sources.installed)


def body_of(case: Case) -> Json:
    """Return the whole body of a case."""
    if case.face == "responses":
        return {"input": "x"} | case.body
    return {"max_tokens": 100, "messages": [{"role": "user", "content": "x"}]} | case.body


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_body_reaches_its_vendor_in_the_format_in_which_it_came(case: Case) -> None:
    sent = send(case.model, case.face, body_of(case), stream=False)

    body = json.loads(sent.body)
    assert sent.protocol == case.face
    assert {name: body.get(name) for name in case.sent} == case.sent
    assert dict(sent.dropped) == case.dropped
    assert refusal(case.model.vendor, case.model.own_id, sent.protocol, sent.body, sent.headers) is None


@pytest.mark.parametrize(
    ("vendor", "model"), [("deepseek", "deepseek-v4-pro"), ("zai", "glm-5.3"), ("dashscope", "qwen3.8-plus")]
)
def test_instructions_between_turns_become_turns_of_the_user(vendor: str, model: str) -> None:
    turns = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello."}, INSTRUCTION, CALLED[0]]
    sent = send(Model(vendor, model), "messages", {"max_tokens": 100, "messages": turns}, stream=False)

    found = json.loads(sent.body)["messages"]
    assert [turn["role"] for turn in found] == ["user", "assistant", "user", "user"]
    assert "Answer only BLUE." in found[2]["content"]
    assert sent.dropped == {"messages.role": "user"}


def test_the_body_of_a_coding_agent_reaches_a_strict_vendor() -> None:
    body: Json = {
        "max_tokens": 32_000,
        "system": [{"type": "text", "text": "You are an agent.", "cache_control": {"type": "ephemeral"}}],
        "stream": True,
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "medium"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "metadata": {"user_id": AGENT_USER},
        "tools": [TYPED],
        "messages": [*CALLED, INSTRUCTION, {"role": "user", "content": "Go on."}],
    }
    sent = send(FLASH, "messages", body, stream=True)

    assert sent.protocol == "messages"
    assert refusal(FLASH.vendor, FLASH.own_id, sent.protocol, sent.body, sent.headers) is None
    assert json.loads(sent.body)["tools"] == [TOOL]
    assert sent.dropped == {
        "metadata.user_id": "hashed",
        "messages.role": "user",
        "messages.reasoning": "blank",
        "context_management": None,
    }


@pytest.mark.parametrize("model", VENDORS, ids=lambda model: model.id)
def test_recorded_requests_of_coding_agents_are_refused_by_no_vendor(model: Model) -> None:
    for face, paths in AGENTS.items():
        for path in paths:
            body = json.loads(path.read_text())
            sent = send(model, face, {name: body[name] for name in body if name != "model"}, stream=True)
            assert refusal(model.vendor, model.own_id, sent.protocol, sent.body, sent.headers) is None, path.parent.name


def test_the_gateway_ends_the_text_where_messages_ignore_stop_sequences() -> None:
    body: Json = {"max_tokens": 100, "messages": CALLED[:1], "stop_sequences": ["END"]}
    sent = send(Model("minimax", "MiniMax-M3"), "messages", body, stream=False)

    assert "stop_sequences" not in json.loads(sent.body)
    assert sent.stops
    assert sent.dropped == {"stop_sequences": "by the gateway"}


def test_a_model_that_only_chat_serves_is_called_by_chat() -> None:
    sent = send(CODE, "responses", {"input": "x"}, stream=False)

    assert sent.protocol == "chat"


@dataclass(frozen=True)
class CustomTool:
    """Custom tool of a responses caller, and the protocol in which the vendor gets it."""

    id: str
    model: Model
    name: str
    protocol: str


CUSTOM = [
    CustomTool("the one of DeepSeek", FLASH, "apply_patch", "responses"),
    CustomTool("another one", FLASH, "write", "chat"),
    CustomTool("xAI has none of this type", Model("xai", "grok-4.3"), "apply_patch", "chat"),
    CustomTool("OpenAI has any", Model("openai", "gpt-5"), "write", "responses"),
]


@pytest.mark.parametrize("case", CUSTOM, ids=lambda case: case.id)
def test_custom_tools_that_responses_lack_are_functions_of_chat(case: CustomTool) -> None:
    tool: Json = {"type": "custom", "name": case.name, "description": "Change a file"}
    sent = send(case.model, "responses", {"input": "x", "tools": [tool]}, stream=False)

    assert sent.protocol == case.protocol
    assert case.name in sent.body.decode()
    assert refusal(case.model.vendor, case.model.own_id, sent.protocol, sent.body, sent.headers) is None


def test_a_schema_of_the_answer_becomes_an_instruction_where_messages_have_no_format() -> None:
    schema: Json = {"type": "object", "properties": {"city": {"type": "string"}}}
    body: Json = {
        "max_tokens": 100,
        "messages": CALLED[:1],
        "output_config": {"format": {"type": "json_schema", "schema": schema}},
    }
    sent = send(FLASH, "messages", body, stream=False)

    found = json.loads(sent.body)
    assert "output_config" not in found
    assert '"city"' in found["system"]
