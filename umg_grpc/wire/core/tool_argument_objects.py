"""Tool arguments as JSON objects, for formats that have only objects. Free text of custom tools is put into one."""

from typing import TypeAlias

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.dropped_fields_report import Report

BLANK_CHARACTERS = " \t\r\n"
"""Whitespace that is allowed around JSON."""

RAW_ARGUMENTS = "raw_arguments"
"""Member that holds arguments that are not a JSON object, since a model may write any text."""


class _Grammar(Struct):
    """Grammar for the text of a custom tool. Chat sends it inside a member `grammar`; responses does not."""

    type: str | None = None
    syntax: str | None = None
    definition: str | None = None
    grammar: "_Grammar | None" = None


def encode_free_text(custom: pb.CustomTool, report: Report) -> JsonObject:
    """Return the parameters of the function that replaces a custom tool: an object schema with the tool's free text as
    `input`, described by the text's grammar. Report the tool, and a format that is no grammar.
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
    """Return a tool call's arguments as an object: {"input": text} for a custom tool, {} if there is none. Arguments
    that are no object become a text in the member `RAW_ARGUMENTS`.
    """
    if call.HasField("text"):
        return {"input": call.text}
    text = call.arguments_json
    if not text.strip(BLANK_CHARACTERS):
        return {}
    try:
        parsed = msgspec.json.decode(text, type=Raw)
    except (ValueError, RecursionError):
        return {RAW_ARGUMENTS: text}
    return parsed if bytes(parsed).startswith(b"{") else {RAW_ARGUMENTS: text}


Arguments: TypeAlias = str | dict[str, Raw] | None
"""Arguments of a provider's call: a text that contains JSON, or the object itself, which some providers send."""


def arguments_text(arguments: Arguments) -> str:
    """Return the arguments of a tool call as text: a text as the model wrote it, an object as JSON, "" for None."""
    return msgspec.json.encode(arguments).decode() if isinstance(arguments, dict) else arguments or ""


class _FreeText(Struct):
    input: str


def free_text(arguments: str) -> str:
    """Return a custom tool's text: the member `input` of its function's arguments, or all of them if there is none."""
    try:
        return msgspec.json.decode(arguments, type=_FreeText).input
    except (ValueError, RecursionError):
        return arguments
