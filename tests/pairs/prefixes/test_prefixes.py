"""The beginning of a conversation is the same, byte for byte, in each of its requests to a provider: prompt caches find
a prompt by its beginning, and nine tenths of the prompt of an agent were sent before.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from tests.pairs.prefixes.conversations import SCHEMA, STEPS, TOOLS, TURNS, Json, Step, growing
from tests.pairs.table import TEXT_FACES
from tests.pairs.vendors.gateway import Model, Sent, send
from umg_grpc.wire import TEXT_FORMATS

GOLDEN = Path(__file__).parents[2] / "unit" / "wire"
MODELS = [
    Model("openai", "gpt-6-sol"),
    Model("openai", "gpt-5.4"),
    Model("openai", "gpt-4.1"),
    Model("azure", "azure/gpt-5.4", "gpt-5.4"),
    Model("anthropic", "claude-opus-5"),
    Model("anthropic", "claude-sonnet-4-6"),
    Model("bedrock-anthropic", "bedrock/anthropic.claude-sonnet-4-6", "anthropic.claude-sonnet-4-6"),
    Model("gemini", "gemini-3.1-pro-preview"),
    Model("gemini", "gemini-2.5-pro"),
    Model("mistral", "mistral-medium-3-5"),
    Model("deepseek", "deepseek-v4-pro"),
    Model("xai", "grok-4.5"),
    Model("moonshot", "kimi-k3"),
    Model("dashscope", "qwen3.8-max"),
    Model("openrouter", "openrouter/anthropic/claude-sonnet-5", "anthropic/claude-sonnet-5"),
    Model("vllm", "vllm/Qwen/Qwen3.5-32B", "Qwen/Qwen3.5-32B"),
]
"""Models of each provider format, with the rules of their vendors for conversations."""
MARKS = ("cache_control", "prompt_cache_breakpoint")
"""Members that state where a cache ends. They move with each request, and are no part of the prompt."""
DESCRIPTION = "Reads.\n  All of it: é"
BEGUN: dict[str, Json] = {
    "chat": {
        "messages": [{"role": "system", "content": "You are an agent."}, {"role": "user", "content": "Read it."}],
        "tools": [
            {"type": "function", "function": {"name": name, "description": DESCRIPTION, "parameters": SCHEMA}}
            for name in TOOLS
        ],
    },
    "responses": {
        "instructions": "You are an agent.",
        "input": [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Read it."}]}],
        "tools": [
            {"type": "function", "name": name, "description": DESCRIPTION, "parameters": SCHEMA, "strict": False}
            for name in TOOLS
        ],
        "store": False,
    },
    "messages": {
        "max_tokens": 5000,
        "system": [{"type": "text", "text": "You are an agent."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Read it."}]}],
        "tools": [{"name": name, "description": DESCRIPTION, "input_schema": SCHEMA} for name in TOOLS],
    },
    "native": {
        "systemInstruction": {"parts": [{"text": "You are an agent."}]},
        "contents": [{"role": "user", "parts": [{"text": "Read it."}]}],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": name, "description": DESCRIPTION, "parametersJsonSchema": SCHEMA} for name in TOOLS
                ]
            }
        ],
    },
}
"""Face -> first request."""
WITHOUT_PICTURES = frozenset({"deepseek"})
"""Vendors whose models read no pictures."""

OF_EACH_FORMAT = [MODELS[place] for place in (0, 4, 7, 10)]
"""Models that are called in responses, messages, native and chat."""


@dataclass(frozen=True)
class Agent:
    """Recorded request of an agent."""

    face: str
    name: str

    def begun(self) -> Json:
        """Return the request without its model, which is that of the provider."""
        body: Json = json.loads((GOLDEN / self.face / self.name / "request.json").read_bytes())
        body.pop("model", None)
        return body


every_face = pytest.mark.parametrize("face", TEXT_FACES)
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: f"{model.vendor}:{model.own_id}")


class Prompt(msgspec.Struct):
    """Prompt of a request to a provider: its elements in the order in which a cache reads them."""

    protocol: str
    head: bytes
    """Tools and instructions."""
    turns: list[bytes]


def prompt(sent: Sent) -> Prompt:
    """Return the prompt of a request to a provider, without the marks of the caches."""
    members = msgspec.json.decode(sent.body, type=dict[str, Raw])
    turns = msgspec.json.decode(members[TURNS[sent.protocol]], type=list[Raw])
    names = ("tools", "system", "instructions", "systemInstruction", "system_instruction", "toolConfig")
    head = b"\n".join(unmarked(members.get(name, Raw(b""))) for name in names)
    return Prompt(sent.protocol, head, [unmarked(turn) for turn in turns])


def unmarked(raw: Raw) -> bytes:
    """Return JSON without the marks of the caches, and byte for byte as it is if it has none."""
    text = bytes(raw)
    if not any(mark.encode() in text for mark in MARKS):
        return text
    return json.dumps(without_marks(json.loads(text)), ensure_ascii=False, separators=(",", ":")).encode()


def without_marks(value: object) -> object:
    if isinstance(value, list):
        return [without_marks(element) for element in value]
    if isinstance(value, dict):
        return {name: without_marks(member) for name, member in value.items() if name not in MARKS}
    return value


def check(model: Model, face: str, begun: Json, steps: Sequence[Step]) -> None:
    """Assert that the prompt of each request of the conversation begins with that of the request before."""
    if model.vendor in WITHOUT_PICTURES:
        steps = [step for step in steps if not (step.shown or step.picture)]
    before: Prompt | None = None
    for body in growing(face, begun, steps):
        now = prompt(send(model, face, body, stream=True))
        if before is not None:
            assert now.protocol == before.protocol
            assert now.head == before.head
            assert now.turns[: len(before.turns)] == before.turns
        before = now


@every_face
@every_model
def test_the_beginning_of_a_conversation_of_all_kinds_of_turns_never_moves(model: Model, face: str) -> None:
    check(model, face, BEGUN[face], STEPS)


@given(
    model=st.sampled_from(MODELS),
    face=st.sampled_from(list(TEXT_FACES)),
    steps=st.lists(st.sampled_from(STEPS), max_size=8),
)
def test_the_beginning_of_no_conversation_moves(model: Model, face: str, steps: list[Step]) -> None:
    check(model, face, BEGUN[face], steps)


AGENTS = [
    Agent("chat", "aider"),
    Agent("chat", "opencode"),
    Agent("chat", "qwen_code"),
    Agent("responses", "codex"),
    Agent("responses", "codex_additional_tools"),
    Agent("messages", "claude_code"),
    Agent("native", "gemini_cli"),
]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
@pytest.mark.parametrize("model", OF_EACH_FORMAT, ids=lambda model: model.own_id)
def test_the_beginning_of_an_agents_conversation_never_moves(model: Model, agent: Agent) -> None:
    check(model, agent.face, agent.begun(), STEPS)


def marked(body: Json) -> Json:
    """Return a body of the messages format with a cache mark on the last block of the user's last turn."""
    turns = list(body["messages"])
    place = max(index for index, turn in enumerate(turns) if turn["role"] == "user")
    *blocks, block = turns[place]["content"]
    turns[place] = turns[place] | {"content": [*blocks, block | {"cache_control": {"type": "ephemeral"}}]}
    return body | {"messages": turns}


def test_a_turn_keeps_its_form_when_the_mark_of_its_caller_has_moved_on() -> None:
    before: list[bytes] = []
    codec = TEXT_FORMATS["messages"]
    for body in growing("messages", BEGUN["messages"], STEPS):
        request = codec.decode_request(msgspec.json.encode({"model": "m", **marked(body)}), {}).canonical
        request.ClearField("source")  # of a gRPC caller
        members = msgspec.json.decode(codec.encode_request(request, "m", False).body, type=dict[str, Raw])
        turns = [unmarked(turn) for turn in msgspec.json.decode(members["messages"], type=list[Raw])]
        assert turns[: len(before)] == before
        before = turns
