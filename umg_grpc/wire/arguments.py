"""Arguments of tool calls where a format has them as JSON objects, and those of tools that take free text."""

from typing import TypeAlias

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.json import JsonObject

BLANK = " \t\r\n"
"""What may stand before and behind JSON."""

RAW_ARGUMENTS = "raw_arguments"
"""Member that holds arguments which are no JSON object: a model may write anything."""

FREE_TEXT: JsonObject = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
"""Schema of a function that stands for a custom tool."""


def call_arguments(call: pb.ToolCall) -> object:
    """What a call says, as an object: free text under the name that `FREE_TEXT` gives it, arguments as they stand,
    empty for none; what is no object as one that holds its text.
    """
    if call.HasField("text"):
        return {"input": call.text}
    text = call.arguments_json
    if not text.strip(BLANK):
        return {}
    try:
        parsed = msgspec.json.decode(text, type=Raw)
    except (ValueError, RecursionError):
        return {RAW_ARGUMENTS: text}
    return parsed if bytes(parsed).startswith(b"{") else {RAW_ARGUMENTS: text}


Arguments: TypeAlias = str | dict[str, Raw] | None
"""Arguments of a provider's call: a text that holds JSON, though some write the object itself."""


def arguments_text(arguments: Arguments) -> str:
    """Arguments as the model wrote them; those of an object as JSON, "" for none."""
    return msgspec.json.encode(arguments).decode() if isinstance(arguments, dict) else arguments or ""


class _FreeText(Struct):
    input: str


def free_text(arguments: str) -> str:
    """The text of a call of a function that stands for a custom tool; what does not fit is given as it is."""
    try:
        return msgspec.json.decode(arguments, type=_FreeText).input
    except (ValueError, RecursionError):
        return arguments
