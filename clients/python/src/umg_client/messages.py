"""Short forms of common messages: a user's text, the text of a response, the numbers of an embedding."""

import sys
from array import array

from umg_client import v1


def user(text: str) -> v1.Message:
    """Return a user's message with this text."""
    return v1.Message(role=v1.Role.USER, parts=[text_part(text)])


def text_part(text: str) -> v1.Part:
    """Return a part with this text."""
    return v1.Part(text=v1.TextPart(text=text))


def text(answer: v1.GenerateResponse) -> str:
    """Return the text of a response's first candidate, "" without one."""
    message = answer.candidates[0].message if answer.candidates else None
    return "".join(part.text.text for part in message.parts if part.text) if message else ""


def tool_calls(answer: v1.GenerateResponse) -> list[v1.ToolCall]:
    """Return the calls of the caller's tools in a response's first candidate."""
    message = answer.candidates[0].message if answer.candidates else None
    return [part.tool_call for part in message.parts if part.tool_call] if message else []


def floats(embedding: v1.Embedding) -> "array[float]":
    """Return the numbers of a vector."""
    numbers = array("f", embedding.values)
    if sys.byteorder == "big":  # the bytes are little-endian
        numbers.byteswap()
    return numbers
