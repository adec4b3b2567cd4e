"""Requests of test callers, independent of the format in which they are sent."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.support.providers.scenarios import TOOLS

Json = dict[str, Any]
RESULTS = {"get_weather": "21 degrees", "get_time": "noon", "refresh": "done"}
"""Results that the callers send for calls, by the name of the tool."""


@dataclass(frozen=True)
class Request:
    """Request of a test caller, independent of the format."""

    text: str
    system: str = ""
    history: tuple[tuple[str, str], ...] = ()  # (user or assistant, text) before it
    tools: tuple[str, ...] = ()  # names in `schemas`
    choice: str = "auto"  # auto, required, or a tool's name
    reasoning: bool = False
    schema: Any = None
    search: bool = False
    stop: str = ""
    limit: int = 3000
    image: bytes = b""  # image/png
    file: bytes = b""  # application/pdf
    schemas: Mapping[str, Any] = field(default_factory=lambda: TOOLS)  # schemas of the tools' arguments
    stored: bool = False  # responses: continues by the id of the response; else by its items
    strips_unknown: bool = False  # chat, ollama_chat: sends back only the fields that clients keep
    visible_reasoning: bool = False  # chat: selects visible reasoning, which `reasoning_effort` does not


@dataclass(frozen=True)
class Turn:
    """Earlier answer of a conversation, with its tool calls."""

    content: Any  # in the format's own form
    calls: tuple[tuple[str, str], ...]  # (id, name of the tool)


def data_url(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
