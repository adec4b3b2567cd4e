"""Arguments of tool calls where a format has them as JSON objects, and those of tools that take free text."""

from typing import TypeAlias

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.json import JsonObject
from umg_grpc.wire.report import Report

BLANK = " \t\r\n"
"""What may stand before and behind JSON."""

RAW_ARGUMENTS = "raw_arguments"
"""Member that holds arguments which are no JSON object: a model may write anything."""


class _Grammar(Struct):
    """Grammar of a custom tool; chat has it a level deeper than responses."""

    type: str | None = None
    syntax: str | None = None
    definition: str | None = None
    grammar: "_Grammar | None" = None


def encode_free_text(custom: pb.CustomTool, report: Report) -> JsonObject:
    """Return the schema of a function that stands for a custom tool: one text, whose description has the grammar that
    the text must fit. The report has the tool, and a format that is no grammar.
    """
    report.drop("custom", "a function with one text")
    text: JsonObject = {"type": "string"}
    grammar = _grammar(custom.format_json)
    if grammar is not None and grammar.definition:
        text["description"] = f"Text that fits this {grammar.syntax or ''} grammar:\n{grammar.definition}"
    elif custom.format_json and (grammar is None or grammar.type != "text"):
        report.drop("custom.format")
    return {"type": "object", "properties": {"input": text}, "required": ["input"]}


def _grammar(format_json: str) -> _Grammar | None:
    try:
        written = msgspec.json.decode(format_json, type=_Grammar) if format_json else None
    except (ValueError, RecursionError):
        return None
    return written.grammar or written if written is not None else None


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
