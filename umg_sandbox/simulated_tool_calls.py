"""Tool calls in simulated responses: selection of the tools, and generation of their arguments."""

import re
from collections.abc import Iterable

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import invalid
from umg_grpc.wire.core.native_schema_conversion import json_schema
from umg_grpc.wire.core.tool_name_conversion import name_of
from umg_grpc.wire.dropped_fields_report import foreign
from umg_sandbox.prompt_reader import Prompt
from umg_sandbox.regular_expressions import matching_sample
from umg_sandbox.schema_value_generation import instance, json_of
from umg_sandbox.schema_work_budget import WorkBudget
from umg_sandbox.words_from_prompt import Words, digest

_WORD = re.compile(r"[\w-]+")
OWN_TOOLS = ("web_search", "file_search")
"""Prefixes of the types of tools that the sandbox simulates itself, and that callers do not run."""


def called_tools(request: pb.GenerateRequest, prompt: Prompt) -> list[tuple[int, pb.Tool]]:
    """Return (position in the request, tool) for each tool that the response calls. It is the forced tool; otherwise
    the tools that the last text of the user names, in this order; otherwise the first tool if a call is required. After
    a tool result, tools are called only if a call is required. Raise UmgError: INVALID_FIELD if the forced tool does
    not exist, UNSUPPORTED_FIELD for a tool choice of another format.
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
    serial = request.HasField("parallel_tool_calls") and not request.parallel_tool_calls
    single = serial or request.face_hints.legacy_functions
    found = dict(allowed[name] for name in called)  # one entry for each tool, also if both its names occur
    return list(found.items())[: 1 if single else None]


def has_schema(request: pb.GenerateRequest) -> bool:
    """Return whether the response may contain values for which the caller sends a JSON schema or grammar."""
    return bool(request.tools) or request.response_format.WhichOneof("kind") in {"json_schema", "enum_text"}


def searches(request: pb.GenerateRequest) -> bool:
    """Return whether to simulate a web search: it is requested by a tool or `search`, and `tool_choice` allows it."""
    if request.HasField("search"):
        return request.search.mode != pb.SEARCH_MODE_OFF
    if request.tool_choice.mode == pb.TOOL_CHOICE_MODE_NONE:
        return False
    return any(tool.HasField("web_search") for tool in request.tools)


def tool_words(request: pb.GenerateRequest) -> list[str]:
    """Return the names of all tools of the request, which are left out of generated texts."""
    return [name for tool in request.tools if (name := _name(tool))]


def call_part(
    request: pb.GenerateRequest,
    prompt: Prompt,
    position: int,
    tool: pb.Tool,
    words: Words,
    salt: str,
    budget: WorkBudget,
) -> pb.Part:
    """Return the message part with the call of a tool, with an id that differs from earlier ones. `position`: of the
    tool in the request; `salt`: varies the arguments; `words`: words of the question only, since the caller may execute
    the arguments (`command`, `script`).
    """
    name = _name(tool)
    call = pb.ToolCall(name=name_of(tool).name, namespace=tool.namespace.name)
    call.tool_type = tool.function.declared.type
    if not request.face_hints.legacy_functions:
        prefix = "toolu" if request.source.format == "messages" else "call"
        call.call_id = f"{prefix}_{digest(prompt.opening, prompt.question, str(prompt.calls), name, salt).hex()[:24]}"
    if tool.HasField("custom"):
        call.text = _free_text(tool.custom, words)
    else:
        call.arguments_json = _arguments(tool.function, position, words, budget)
    return pb.Part(tool_call=call)


def read_schema(schema_json: str, native: bool, field: str) -> object:
    """Return a JSON schema as Python values. `native`: it is spelled as in the native format; `field`: its path in the
    request. Raise UmgError(INVALID_FIELD) for an invalid schema.
    """
    schema = json_schema(schema_json, native, field)
    if isinstance(schema, msgspec.Raw):
        try:
            schema = msgspec.json.decode(schema)
        except (ValueError, RecursionError):
            raise invalid(field, "it is not one JSON value; correct it") from None
    if not isinstance(schema, dict | bool):
        raise invalid(field, "a JSON schema is an object; send one")
    return schema


def _arguments(function: pb.FunctionTool, position: int, words: Words, budget: WorkBudget) -> str:
    if not function.parameters_json:
        return "{}"
    field = f"tools[{position}].function.parameters_json"
    schema = read_schema(function.parameters_json, function.native_schema, field)
    made = instance(schema, words, field=field, only_mentioned=True, budget=budget)
    return json_of(made) if isinstance(made, dict) else "{}"


def _free_text(tool: pb.CustomTool, words: Words) -> str:
    try:
        grammar = msgspec.json.decode(tool.format_json or "{}")
    except (ValueError, RecursionError):
        grammar = None
    if isinstance(grammar, dict):
        inner = grammar.get("grammar", grammar)
        if isinstance(inner, dict) and inner.get("syntax") == "regex" and isinstance(inner.get("definition"), str):
            sample = matching_sample(inner["definition"])
            if sample is not None:
                return sample
    return " ".join(words.topics(5))


def _own_names(request: pb.GenerateRequest) -> set[str]:
    declared = {tool.web_search.declared_type for tool in request.tools if tool.HasField("web_search")}
    return {"web_search", *declared} if declared else set()


def _name(tool: pb.Tool) -> str:
    name = name_of(tool)
    return name.joined if name.name else ""


def _named(text: str, names: Iterable[str]) -> list[str]:
    """Return the names that a text contains as whole words, in the order of their first occurrence."""
    places = dict[str, int]()
    for found in _WORD.finditer(text):
        places.setdefault(found[0].strip("-"), found.start())
    at = dict[str, int]()
    for name in names:
        place = places.get(name, -1)
        if place < 0 and not _WORD.fullmatch(name) and name in text:  # names with dots or other characters
            whole = re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text)
            place = whole.start() if whole else -1
        if place >= 0:
            at[name] = place
    return sorted(at, key=lambda name: at[name])
