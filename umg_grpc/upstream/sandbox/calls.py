"""Which tools are called, and with what."""

import re
from collections.abc import Iterable

import msgspec

from umg_grpc.upstream.sandbox import patterns
from umg_grpc.upstream.sandbox.instances import instance, json_of
from umg_grpc.upstream.sandbox.prompt import Prompt
from umg_grpc.upstream.sandbox.words import Words, digest
from umg_grpc.v1 import pb
from umg_grpc.wire.json import invalid
from umg_grpc.wire.names import name_of
from umg_grpc.wire.report import foreign
from umg_grpc.wire.schemas import json_schema

_WORD = re.compile(r"[\w-]+")
PATTERN_STEPS = 20_000
OWN_TOOLS = ("web_search", "file_search")
"""How the types begin of the tools that the sandbox runs itself, and never asks the caller to run."""


def called_tools(request: pb.GenerateRequest, prompt: Prompt) -> list[tuple[int, pb.Tool]]:
    """The tools to call, with their positions in the request: the one that is forced; else those that the last user
    text names, in its order; else, where one is required, the first. After a tool gave its result only what is forced.

    Raises UmgError: INVALID_FIELD for a choice among tools that are not there, UNSUPPORTED_FIELD for a choice that only
    another format knows.
    """
    choice = request.tool_choice
    if choice.HasField("opaque") and not choice.opaque.type.startswith(OWN_TOOLS):
        raise foreign(choice.opaque, "tool_choice")
    tools = {_name(tool): (index, tool) for index, tool in enumerate(request.tools) if _name(tool)}
    tools |= {name_of(tool).name: (index, tool) for index, tool in tools.values() if tool.HasField("namespace")} | tools
    allowed = {name: tools[name] for name in choice.names if name in tools} if choice.names else tools
    own = _own_names(request)
    for position, name in enumerate(choice.names):
        if name not in tools and name not in own:
            raise invalid(f"tool_choice.names[{position}]", f"there is no tool `{name[:64]}`; name one of `tools`")
    required = choice.mode == pb.TOOL_CHOICE_MODE_REQUIRED
    if required and not request.tools:
        raise invalid("tool_choice", "a tool is required and there are none; add `tools`")
    if choice.mode == pb.TOOL_CHOICE_MODE_NONE or choice.HasField("opaque") or not allowed:
        return []
    if prompt.results and not required:
        return []
    called = _named(prompt.question, allowed)
    if required and not called:
        called = [next(iter(allowed))]
    single = request.legacy_functions or (request.HasField("parallel_tool_calls") and not request.parallel_tool_calls)
    found = dict(allowed[name] for name in called)  # under either of its names
    return list(found.items())[: 1 if single else None]


def searches(request: pb.GenerateRequest) -> bool:
    """Whether to search in the web: a tool or an option asks for it, and `tool_choice` does not forbid it."""
    if request.HasField("search"):
        return request.search.mode != "off"
    if request.tool_choice.mode == pb.TOOL_CHOICE_MODE_NONE:
        return False
    return any(tool.HasField("web_search") for tool in request.tools)


def tool_words(request: pb.GenerateRequest) -> list[str]:
    """Names of all tools: in a prompt they are no words to make values of."""
    return [name for tool in request.tools if (name := _name(tool))]


def call_part(
    request: pb.GenerateRequest, prompt: Prompt, position: int, tool: pb.Tool, words: Words, salt: str
) -> pb.Part:
    """The call of one tool. Its id follows from the prompt: another one after each call of a conversation. `words`: of
    the question alone, since the caller may run what they make (a `command`, a `script`).
    """
    name = _name(tool)
    call = pb.ToolCall(name=name_of(tool).name, namespace=tool.namespace.name)
    call.tool_type = tool.function.declared.type
    if not request.legacy_functions:
        prefix = "toolu" if request.source.format == "messages" else "call"
        call.call_id = f"{prefix}_{digest(prompt.opening, prompt.question, str(prompt.calls), name, salt).hex()[:24]}"
    if tool.HasField("custom"):
        call.text = _free_text(tool.custom, words)
    else:
        call.arguments_json = _arguments(tool.function, position, words)
    return pb.Part(tool_call=call)


def read_schema(schema_json: str, native: bool, field: str) -> object:
    """The schema as plain values. Raises UmgError(INVALID_FIELD) for what is none."""
    schema = json_schema(schema_json, native, field)
    if isinstance(schema, msgspec.Raw):
        try:
            schema = msgspec.json.decode(schema)
        except (ValueError, RecursionError):
            raise invalid(field, "it is not one JSON value; correct it") from None
    if not isinstance(schema, dict | bool):
        raise invalid(field, "a JSON schema is an object; send one")
    return schema


def made_up(schema: object, words: Words, field: str, *, sparing: bool = False) -> object:
    """A value that is valid for the schema; `sparing`: see `instance`. Raises UmgError(INVALID_FIELD) for one that is
    nested too deeply.
    """
    try:
        return instance(schema, words, sparing=sparing)
    except RecursionError:
        raise invalid(field, "the schema is nested too deeply; simplify it") from None


def _arguments(function: pb.FunctionTool, position: int, words: Words) -> str:
    if not function.parameters_json:
        return "{}"
    field = f"tools[{position}].function.parameters_json"
    schema = read_schema(function.parameters_json, function.native_schema, field)
    made = made_up(schema, words, field, sparing=True)
    return json_of(made) if isinstance(made, dict) else "{}"


def _free_text(tool: pb.CustomTool, words: Words) -> str:
    """Text for a custom tool: one of its regular grammar, else words of the prompt."""
    try:
        grammar = msgspec.json.decode(tool.format_json or "{}")
    except (ValueError, RecursionError):
        grammar = None
    if isinstance(grammar, dict):
        inner = grammar.get("grammar", grammar)
        if isinstance(inner, dict) and inner.get("syntax") == "regex" and isinstance(inner.get("definition"), str):
            pattern = patterns.parse(inner["definition"], patterns.Budget(PATTERN_STEPS))
            try:
                if pattern is not None:
                    return pattern.sample(words.pick)
            except patterns.Exhausted:
                pass
    return " ".join(words.topics(5))


def _own_names(request: pb.GenerateRequest) -> set[str]:
    """Names under which a caller may choose the web search."""
    declared = {tool.web_search.declared_type for tool in request.tools if tool.HasField("web_search")}
    return {"web_search", *declared} if declared else set()


def _name(tool: pb.Tool) -> str:
    """Name of a tool, joined with its namespace where it has one; "" for a tool that is not called."""
    name = name_of(tool)
    return name.joined if name.name else ""


def _named(text: str, names: Iterable[str]) -> list[str]:
    """The names that the text has as whole words, in its order."""
    places = dict[str, int]()
    for found in _WORD.finditer(text):
        places.setdefault(found[0].strip("-"), found.start())
    at = dict[str, int]()
    for name in names:
        place = places.get(name, -1)
        if place < 0 and not _WORD.fullmatch(name) and name in text:  # dots and other characters
            whole = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)
            place = whole.start() if whole else -1
        if place >= 0:
            at[name] = place
    return sorted(at, key=lambda name: at[name])
