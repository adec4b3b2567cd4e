"""Bodies as coding agents send them: a long system prompt, a hundred tools with large schemas, and a history of calls,
results and reasoning, two megabytes in all.
"""

import base64
import json
import random
from collections.abc import Callable
from typing import Any

from tests.support.callers.requests import Json

TOOLS = 100
BYTES = 2 * 2**20
WORDS = ["def", "return", '{"a":', "1.0}", "\\n\t<tag>", "漢字", "🌍", "\u2028", '"quoted"', "C:\\\\path"]


class _Agent:
    """One session, the same in each run."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.tools = [self._tool(number) for number in range(TOOLS)]

    def text(self, words: int) -> str:
        return " ".join(self._random.choice(WORDS) for _ in range(words))

    def _tool(self, number: int) -> Json:
        properties = {
            f"field_{place}": {"type": "string", "description": self.text(12), "default": 1.0, "enum": ["a", "b"]}
            for place in range(8)
        }
        schema = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": properties}
        return {"name": f"mcp__server__tool_{number}", "description": self.text(40), "schema": schema}

    def call(self) -> tuple[str, str, Json]:
        """Return id, name and arguments of the next call."""
        arguments = {"path": self.text(2), "content": self.text(60), "limit": 2000, "share": 0.10}
        return f"call_{self._random.getrandbits(64):x}", self._random.choice(self.tools)["name"], arguments

    def state(self) -> str:
        return base64.b64encode(self._random.randbytes(600)).decode()


def _filled(body: Json, history: list[Any], turn: Callable[[], list[Any]]) -> bytes:
    """Return the body with turns until it is long enough."""
    size = len(_written(body))
    while size < BYTES:
        more = turn()
        size += len(_written(more)) - 1
        history += more
    return _written(body)


def _written(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def messages(model: str) -> bytes:
    agent = _Agent(1)
    history: list[Any] = [{"role": "user", "content": agent.text(100)}]
    body: Json = {
        "model": model,
        "max_tokens": 32000,
        "system": [{"type": "text", "text": agent.text(3000), "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "thinking": {"type": "enabled", "budget_tokens": 31999},
        "tools": [
            {"name": tool["name"], "description": tool["description"], "input_schema": tool["schema"]}
            for tool in agent.tools
        ],
        "metadata": {"user_id": "user_1_session_2"},
        "messages": history,
    }

    def turn() -> list[Any]:
        call_id, name, arguments = agent.call()
        result = {"type": "tool_result", "tool_use_id": call_id, "content": [{"type": "text", "text": agent.text(800)}]}
        return [
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": agent.text(50), "signature": agent.state()},
                    {"type": "tool_use", "id": call_id, "name": name, "input": arguments},
                ],
            },
            {"role": "user", "content": [result]},
        ]

    return _filled(body, history, turn)


def responses(model: str) -> bytes:
    agent = _Agent(2)
    history: list[Any] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": agent.text(100)}]}
    ]
    body: Json = {
        "model": model,
        "instructions": agent.text(3000),
        "input": history,
        "tools": [
            {
                "type": "function",
                "name": tool["name"],
                "description": tool["description"],
                "strict": False,
                "parameters": tool["schema"],
            }
            for tool in agent.tools
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": False,
        "reasoning": {"effort": "high", "summary": "auto"},
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "0199-session",
    }

    def turn() -> list[Any]:
        call_id, name, arguments = agent.call()
        return [
            {"type": "reasoning", "summary": [], "content": None, "encrypted_content": agent.state()},
            {"type": "function_call", "name": name, "arguments": json.dumps(arguments), "call_id": call_id},
            {"type": "function_call_output", "call_id": call_id, "output": agent.text(800)},
        ]

    return _filled(body, history, turn)


def chat(model: str) -> bytes:
    agent = _Agent(3)
    history: list[Any] = [
        {"role": "system", "content": agent.text(3000)},
        {"role": "user", "content": [{"type": "text", "text": agent.text(100)}]},
    ]
    body: Json = {
        "model": model,
        "messages": history,
        "max_tokens": 32000,
        "temperature": 0.0,
        "tools": [
            {
                "type": "function",
                "function": {"name": tool["name"], "description": tool["description"], "parameters": tool["schema"]},
            }
            for tool in agent.tools
        ],
    }

    def turn() -> list[Any]:
        call_id, name, arguments = agent.call()
        function = {"name": name, "arguments": json.dumps(arguments)}
        return [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": call_id, "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": call_id, "content": agent.text(800)},
        ]

    return _filled(body, history, turn)


def native(model: str) -> bytes:
    """Return the body; `model` is in the path."""
    agent = _Agent(4)
    history: list[Any] = [{"role": "user", "parts": [{"text": agent.text(100)}]}]
    body: Json = {
        "contents": history,
        "systemInstruction": {"role": "user", "parts": [{"text": agent.text(3000)}]},
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": tool["name"],
                        "description": tool["description"],
                        "parametersJsonSchema": tool["schema"],
                    }
                    for tool in agent.tools
                ]
            }
        ],
        "generationConfig": {"temperature": 1, "topP": 0.95, "thinkingConfig": {"includeThoughts": True}},
    }

    def turn() -> list[Any]:
        call_id, name, arguments = agent.call()
        return [
            {
                "role": "model",
                "parts": [
                    {
                        "functionCall": {"id": call_id, "name": name, "args": arguments},
                        "thoughtSignature": agent.state(),
                    }
                ],
            },
            {
                "role": "user",
                "parts": [{"functionResponse": {"id": call_id, "name": name, "response": {"output": agent.text(800)}}}],
            },
        ]

    return _filled(body, history, turn)


AGENTS = {"chat": chat, "responses": responses, "messages": messages, "native": native}
