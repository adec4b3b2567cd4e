"""Prompts as the models of a vendor read them: blocks in the order tools, system, messages, with the marks of a cache."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.support.providers.common import compact
from tests.support.providers.server import Json

TOKEN_BYTES = 4
CONTROLS = frozenset({"cache_control", "prompt_cache_breakpoint"})
UNREAD = frozenset({"id", "status", "client_metadata"})
"""Members of items of responses that no model reads: names for the client."""


@dataclass(frozen=True)
class Block:
    """Part of a prompt. `lifetime`: that of the mark at its end ("5m", "30m" for one without), "" for no mark."""

    content: bytes
    lifetime: str = ""
    path: str = ""
    is_message: bool = False


@dataclass(frozen=True)
class Prompt:
    blocks: tuple[Block, ...]

    @property
    def text(self) -> bytes:
        return b"".join(block.content for block in self.blocks)

    @property
    def tokens(self) -> int:
        return len(self.text) // TOKEN_BYTES


def _mark(value: Json, usual: str) -> str:
    for name, lifetime in (("cache_control", "5m"), ("prompt_cache_breakpoint", usual)):
        if (control := value.get(name)) is not None:
            return str(control.get("ttl") or lifetime)
    return ""


def _bare(value: Any, left_out: frozenset[str] = CONTROLS) -> Any:
    if isinstance(value, dict):
        return {name: _bare(each, left_out) for name, each in value.items() if name not in left_out}
    return [_bare(each, left_out) for each in value] if isinstance(value, list) else value


def _block(kind: str, value: Any, path: str, usual: str, *, is_message: bool = False) -> Block:
    """Return a block of a value. Text has one form, whether it is a string or a part of this type."""
    if isinstance(value, dict) and set(value) - CONTROLS in ({"type", "text"}, {"text"}):
        content = f"{kind}{value['text']}\n"
    elif isinstance(value, str):
        content = f"{kind}{value}\n"
    else:
        content = f"{kind}{compact(_bare(value))}\n"
    mark = _mark(value, usual) if isinstance(value, dict) else ""
    return Block(content.encode(), mark, path, is_message)


def _parts(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [] if content is None else [content]


def messages_blocks(body: Json) -> Iterator[Block]:
    for index, tool in enumerate(body.get("tools") or ()):
        yield _block("tool ", tool, f"tools.{index}", "5m")
    for index, part in enumerate(_parts(body.get("system"))):
        yield _block("system ", part, f"system.{index}", "5m")
    role = ""
    for at, message in enumerate(body["messages"]):
        for index, part in enumerate(_parts(message["content"])):
            kind = "" if message["role"] == role else f"<{message['role']}>"
            role = message["role"]
            yield _block(kind, part, f"messages.{at}.content.{index}", "5m", is_message=True)


def chat_blocks(body: Json) -> Iterator[Block]:
    """Yield the blocks of a chat request. A message of the assistant is one block with its reasoning and calls."""
    for index, tool in enumerate(body.get("tools") or ()):
        yield _block("tool ", tool, f"tools[{index}]", "30m")
    for at, message in enumerate(body["messages"]):
        rest = {name: value for name, value in message.items() if name not in ("role", "content") and value is not None}
        parts = [part for part in _parts(message.get("content")) if part != ""]
        if rest:
            parts.insert(0, rest)
        for index, part in enumerate(parts):
            kind = f"<{message['role']}>" if index == 0 else ""
            yield _block(kind, part, f"messages[{at}].content[{index}]", "30m", is_message=True)


def responses_blocks(body: Json) -> Iterator[Block]:
    for index, tool in enumerate(body.get("tools") or ()):
        yield _block("tool ", tool, f"tools[{index}]", "30m")
    if body.get("instructions"):
        yield _block("<system>", body["instructions"], "instructions", "30m")
    given = body.get("input") or []
    for at, item in enumerate([{"role": "user", "content": given}] if isinstance(given, str) else given):
        if item.get("type", "message") != "message":
            yield _block("<item>", _bare(item, UNREAD), f"input[{at}]", "30m", is_message=True)
            continue
        for index, part in enumerate(_parts(item["content"])):
            kind = f"<{item['role']}>" if index == 0 else ""
            text = {"type": "text", **_text_part(part)} if isinstance(part, dict) else part
            yield _block(kind, text, f"input[{at}].content[{index}]", "30m", is_message=True)


def _text_part(part: Json) -> Json:
    if part["type"] in ("input_text", "output_text"):
        return {name: value for name, value in part.items() if name in ("text", *CONTROLS)}
    return part


def native_blocks(body: Json) -> Iterator[Block]:
    for index, tool in enumerate(body.get("tools") or ()):
        yield _block("tool ", tool, f"tools[{index}]", "")
    system = body.get("systemInstruction") or body.get("system_instruction") or {}
    for index, part in enumerate(_parts(system.get("parts"))):
        yield _block("system ", part, f"systemInstruction.parts[{index}]", "")
    for at, content in enumerate(body.get("contents") or ()):
        for index, part in enumerate(_parts(content["parts"])):
            kind = f"<{content.get('role', 'user')}>" if index == 0 else ""
            yield _block(kind, part, f"contents[{at}].parts[{index}]", "", is_message=True)


BLOCKS = {"messages": messages_blocks, "chat": chat_blocks, "responses": responses_blocks, "native": native_blocks}


def prompt_of(wire_format: str, body: Json, settings: tuple[str, ...] = ()) -> Prompt:
    """Return the prompt of a request. `settings`: members that are read before its messages."""
    blocks = list(BLOCKS[wire_format](body))
    selected = {name: body[name] for name in settings if body.get(name) is not None}
    if not selected:
        return Prompt(tuple(blocks))
    first = next((at for at, block in enumerate(blocks) if block.is_message), len(blocks))
    return Prompt((*blocks[:first], _block("settings ", selected, "", ""), *blocks[first:]))
