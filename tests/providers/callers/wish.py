"""What callers want and what they are shown, whatever the SDK."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

Json = dict[str, Any]


@dataclass(frozen=True)
class Shown:
    """An answer as an SDK shows it."""

    text: str = ""
    thought: str = ""
    calls: tuple[tuple[str, Json], ...] = ()  # name, arguments
    sources: tuple[tuple[str, str, str], ...] = ()  # address, title, the words that it stands for
    refusal: str = ""
    finish: str = ""  # in the format's own word
    usage: tuple[int, int, int, int] = (0, 0, 0, 0)  # prompt with the cached, cached, output with thoughts, thoughts
    image: bytes = b""
    turn: Any = field(default=None, compare=False)  # what the SDK's users append to the conversation
    ids: tuple[str, ...] = field(default=(), compare=False)  # of the calls


@dataclass(frozen=True)
class Wish:
    """What a caller wants."""

    text: str
    system: str = ""
    history: tuple[tuple[str, str], ...] = ()  # (user or assistant, text) before it
    tools: tuple[str, ...] = ()  # names in TOOLS
    choice: str = "auto"  # auto, required, or a tool's name
    thinking: bool = False
    schema: Any = None
    search: bool = False
    stop: str = ""
    limit: int = 3000
    image: bytes = b""  # of image/png
    file: bytes = b""  # of application/pdf
    before: Shown | None = None  # the answer whose calls were run
    results: Mapping[str, str] = field(default_factory=dict)  # by the tool's name


class Caller(Protocol):
    """One SDK, made for one address and model."""

    async def ask(self, wish: Wish) -> Shown: ...

    async def stream(self, wish: Wish) -> Shown:
        """The same, put together from the stream."""
        ...


def data_url(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def sendable(value: Any, *more: str) -> Any:
    """Without what the stream helpers add, which the API refuses."""
    if isinstance(value, list):
        return [sendable(each, *more) for each in value]
    if isinstance(value, dict):
        added = ("parsed", "parsed_arguments", *more)
        return {key: sendable(each, *more) for key, each in value.items() if key not in added}
    return value
