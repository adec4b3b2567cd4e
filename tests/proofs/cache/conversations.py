"""Growing conversations as agents send them, in each format: recorded beginnings, continued by the model's answers."""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.proofs.cache import task
from tests.support.providers.server import Json

WIRE = Path(__file__).parents[2] / "unit" / "wire"
FOLDER = "/home/user/project"
CUT = " [...] "
FILLING = " ".join(
    f"Rule {number}: keep each answer short, and state the file that it is about." for number in range(40)
)
"""Text in place of the cut parts of recorded texts, so that a prompt is as long as those of agents are."""
READING: Json = {
    "type": "object",
    "properties": {"file_path": {"type": "string", "description": "The absolute path of the file"}},
    "required": ["file_path"],
    "additionalProperties": False,
}


class Conversation(ABC):
    """Conversation of one agent with a model: the body of its next request."""

    def __init__(self, recorded: str, model: str, parts: int, turns: int = 1) -> None:
        """Begin as in a recorded request. `parts`: calls of tools in each of the user's `turns`."""
        text = (WIRE / self.format / recorded / "request.json").read_text(encoding="utf-8")
        self.body: Json = _filled(json.loads(text))
        if "model" in self.body:
            self.body["model"] = model
        self.body.pop("stream", None)
        self.body.pop("stream_options", None)
        self.model, self.parts, self._turns = model, parts, turns - 1
        self._prompt = task.PROMPT.format(parts=parts, folder=FOLDER)
        self._begin(self._prompt)

    format: str

    @abstractmethod
    def _begin(self, prompt: str) -> None:
        """Leave the first turn of the user with another prompt, and a tool that reads files."""

    @abstractmethod
    def _add_question(self, prompt: str) -> None:
        """Add a turn of the user."""

    @abstractmethod
    def _add(self, answer: Json) -> bool:
        """Add a response, and the result of its call. Return False for a response without a call."""

    def add(self, answer: Json) -> bool:
        """Add a response, and the result of its call or else the next turn of the user. Return False at the end."""
        if self._add(answer):
            return True
        self._turns -= 1
        if self._turns < 0:
            return False
        self._add_question(self._prompt)
        return True

    @property
    def path(self) -> str:
        return {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages"}[self.format]

    def _result(self, arguments: Json) -> str:
        number = int(arguments["file_path"].rpartition("-")[2].removesuffix(".txt"))
        return task.part_text(number, self.parts)


class ChatConversation(Conversation):
    format = "chat"

    def _begin(self, prompt: str) -> None:
        system, user = self.body["messages"][:2]
        self.body["messages"] = [system, {"role": "user", "content": [{"type": "text", "text": prompt}]}]
        self.body["messages"][1]["content"][:0] = _others(user["content"])
        self.body["tools"].append({"type": "function", "function": {"name": "read_file", "parameters": READING}})

    def _add(self, answer: Json) -> bool:
        message = answer["choices"][0]["message"]
        kept = ("role", "content", "reasoning_content", "tool_calls")
        self.body["messages"].append({name: message[name] for name in kept if message.get(name) is not None})
        for call in message.get("tool_calls") or ():
            result = self._result(json.loads(call["function"]["arguments"]))
            self.body["messages"].append({"role": "tool", "tool_call_id": call["id"], "content": result})
        return bool(message.get("tool_calls"))

    def _add_question(self, prompt: str) -> None:
        self.body["messages"].append({"role": "user", "content": [{"type": "text", "text": prompt}]})


class ResponsesConversation(Conversation):
    """Conversation of an agent that speaks responses, without state at the provider."""

    format = "responses"

    def _begin(self, prompt: str) -> None:
        items = self.body["input"]
        last = next(at for at in range(len(items)) if items[at]["type"] == "reasoning")
        items[last - 1]["content"] = [{"type": "input_text", "text": prompt}]
        del items[last:]
        self.body["tools"].append({"type": "function", "name": "read_file", "strict": False, "parameters": READING})
        self.body["tools"] = [tool for tool in self.body["tools"] if tool.get("name") != "exec_command"]

    def _add(self, answer: Json) -> bool:
        self.body["input"] += answer["output"]
        calls = [item for item in answer["output"] if item["type"] == "function_call"]
        for call in calls:
            result = self._result(json.loads(call["arguments"]))
            self.body["input"].append({"type": "function_call_output", "call_id": call["call_id"], "output": result})
        return bool(calls)

    def _add_question(self, prompt: str) -> None:
        content = [{"type": "input_text", "text": prompt}]
        self.body["input"].append({"type": "message", "role": "user", "content": content})


class MessagesConversation(Conversation):
    """Conversation of an agent that speaks messages, and marks its system prompt and the end of each last turn."""

    format = "messages"

    def _begin(self, prompt: str) -> None:
        user, *later = self.body["messages"]
        user["content"][-1] = {"type": "text", "text": prompt}
        self.body["messages"] = [user, *[turn for turn in later[:1] if turn["role"] == "system"]]
        self._mark_last()

    def _add(self, answer: Json) -> bool:
        calls = [block for block in answer["content"] if block["type"] == "tool_use"]
        results = [
            {"type": "tool_result", "tool_use_id": call["id"], "content": self._result(call["input"])} for call in calls
        ]
        self.body["messages"].append({"role": "assistant", "content": answer["content"]})
        if results:
            self.body["messages"].append({"role": "user", "content": results})
            self._mark_last()
        return bool(results)

    def _add_question(self, prompt: str) -> None:
        self.body["messages"].append({"role": "user", "content": [{"type": "text", "text": prompt}]})
        self._mark_last()

    def _mark_last(self) -> None:
        turns = [turn for turn in self.body["messages"] if turn["role"] == "user"]
        for turn in turns:
            for block in turn["content"]:
                block.pop("cache_control", None)
        turns[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}


class NativeConversation(Conversation):
    format = "native"

    def _begin(self, prompt: str) -> None:
        first = self.body["contents"][0]
        first["parts"][-1] = {"text": prompt}
        self.body["contents"] = [first]

    @property
    def path(self) -> str:
        return f"/models/{self.model}:generateContent"

    def _add(self, answer: Json) -> bool:
        content = answer["candidates"][0]["content"]
        self.body["contents"].append(content)
        calls = [part["functionCall"] for part in content["parts"] if "functionCall" in part]
        results = [
            {"functionResponse": {**_named(call), "response": {"output": self._result(call["args"])}}} for call in calls
        ]
        if results:
            self.body["contents"].append({"role": "user", "parts": results})
        return bool(results)

    def _add_question(self, prompt: str) -> None:
        self.body["contents"].append({"role": "user", "parts": [{"text": prompt}]})


@dataclass(frozen=True)
class Agent:
    name: str
    conversation: type[Conversation]
    recorded: str


AGENTS = (
    Agent("OpenCode", ChatConversation, "opencode"),
    Agent("Qwen Code", ChatConversation, "qwen_code"),
    Agent("Codex", ResponsesConversation, "codex"),
    Agent("Claude Code", MessagesConversation, "claude_code"),
    Agent("Gemini CLI", NativeConversation, "gemini_cli"),
)


def _named(call: Json) -> Json:
    return {name: call[name] for name in ("id", "name") if name in call}


def _others(content: Any) -> list[Json]:
    return content[:-1] if isinstance(content, list) else []


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _filled(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each) for each in value]
    return value.replace(CUT, f" {FILLING} ") if isinstance(value, str) else value
