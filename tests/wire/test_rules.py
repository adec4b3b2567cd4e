"""Accepted bodies keep the rules of the schema, so that the service does not refuse them afterwards."""

import json
from collections.abc import Callable, Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct, inspect

from umg_grpc.errors import UmgError
from umg_grpc.service.pipeline.validation import check
from umg_grpc.wire import FORMATS
from umg_grpc.wire.chat import schema as chat
from umg_grpc.wire.core.function_tools import FunctionDefinition
from umg_grpc.wire.messages import schema as messages
from umg_grpc.wire.native import schema as native
from umg_grpc.wire.responses import schema as responses

Json = st.SearchStrategy[object]

NUMBERS = st.sampled_from(
    [-3, -2.5, -2, -1, 0, 1, 2, 2.5, 3, 20, 21, 50.0, 51, 128, 129, 100.5, 1024, 1025, 2**31, 2**63, 1e300]
)
TEXTS = st.sampled_from(
    [
        "",
        "a",
        "low",
        "auto",
        "required",
        "user",
        "5m",
        "x" * 600,
        "data:image/png;base64,aGk=",
        "http://h/i.png",
        "aGk=",
    ]
)
LEAVES = st.none() | st.booleans() | NUMBERS | TEXTS
MAPS = st.dictionaries(TEXTS, LEAVES, max_size=70)
ANYTHING = LEAVES | st.lists(LEAVES, max_size=6) | MAPS | st.lists(MAPS, max_size=3)


class Bodies:
    """Bodies of one format, generated from its structs."""

    def __init__(
        self,
        whole: type[Struct],
        right: Mapping[str, object],
        kinds: Mapping[str, type[Struct]] | None = None,
        plain: tuple[type[Struct], ...] = (),
    ) -> None:
        """Initialize. `right` is accepted. `kinds` (by `type`) and `plain` (without a `type`) are the structs that may
        occur where a struct keeps the JSON raw: blocks, items and tools.
        """
        self.right = right
        self._structs: dict[type[Struct], Json] = {}
        self._fields = {each.encode_name: self._of(each.type) for each in struct_info(whole).fields}
        blocks = [self._of(struct_info(struct)).map(typed(kind)) for kind, struct in (kinds or {}).items()]
        self._raw = st.one_of([*blocks, *(self._of(struct_info(struct)) for struct in plain), MAPS, TEXTS])

    def some(self) -> Json:
        """Return bodies that are valid except for a few fields, whose values are of their type, or anything."""
        names = st.lists(st.sampled_from(sorted(self._fields)), max_size=3, unique=True)
        values = {name: st.one_of([field] * 3 + [ANYTHING]) for name, field in self._fields.items()}

        @st.composite
        def bodies(draw: st.DrawFn) -> object:  # no strategy is made in it, which would take longer than a value
            return {**self.right, **{name: draw(values[name]) for name in draw(names)}}

        return bodies()

    def _of(self, info: inspect.Type) -> Json:
        """Return values of a type, in its range and around it."""
        match info:
            case inspect.StructType():
                if info.cls not in self._structs:
                    self._structs[info.cls] = st.deferred(lambda: self._struct(info))
                return self._structs[info.cls]
            case inspect.UnionType():
                return st.one_of([self._of(each) for each in info.types])
            case inspect.ListType() | inspect.CollectionType():
                return st.lists(self._of(info.item_type), max_size=2)
            case inspect.DictType():
                return st.dictionaries(TEXTS, self._of(info.value_type), max_size=3) | MAPS
            case inspect.LiteralType():
                return st.sampled_from([*info.values, *info.values, *info.values, "other"])
            case inspect.IntType() | inspect.FloatType():
                return NUMBERS
            case inspect.BoolType():
                return st.booleans()
            case inspect.StrType():
                return TEXTS
            case inspect.NoneType():
                return st.none()
            case _:
                return st.deferred(lambda: self._raw)

    def _struct(self, info: inspect.StructType) -> Json:
        return st.fixed_dictionaries(
            {each.encode_name: self._of(each.type) for each in info.fields if each.required},
            optional={each.encode_name: self._of(each.type) for each in info.fields if not each.required},
        )


def struct_info(struct: type[Struct]) -> inspect.StructType:
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return info


def typed(kind: str) -> Callable[[object], object]:
    return lambda block: {**block, "type": kind} if isinstance(block, dict) else block


TURN = {"role": "user", "content": "Hi"}
BODIES = {
    "chat": Bodies(
        chat.ChatRequest,
        {"model": "m", "messages": [TURN]},
        {
            "text": chat.TextPart,
            "image_url": chat.ImagePart,
            "input_audio": chat.AudioPart,
            "refusal": chat.RefusalPart,
            "function": chat.FunctionTool,
            "custom": chat.CustomTool,
            "new": chat.Kind,
            "allowed_tools": chat.AllowedToolsChoice,
        },
        (chat.FunctionToolCall, chat.CustomToolCall, chat.ChosenTool),
    ),
    "messages": Bodies(
        messages.MessagesRequest,
        {"model": "m", "messages": [TURN], "max_tokens": 9},
        {
            "text": messages.TextBlock,
            "image": messages.ImageBlock,
            "document": messages.DocumentBlock,
            "thinking": messages.ThinkingBlock,
            "redacted_thinking": messages.RedactedThinkingBlock,
            "tool_use": messages.ToolUseBlock,
            "tool_result": messages.ToolResultBlock,
            "server_tool_use": messages.ServerToolUseBlock,
            "search_result": messages.SearchResultBlock,
            "web_search_tool_result": messages.ServerToolResultBlock,
            "new": messages.Kind,
            "base64": messages.Base64Source,
            "url": messages.UrlSource,
            "file": messages.FileSource,
            "content": messages.ContentSource,
            "web_search_result": messages.WebSearchResult,
            "custom": messages.FunctionTool,
            "web_search_20250305": messages.WebSearchTool,
        },
        (messages.FunctionTool, messages.Citation),
    ),
    "native": Bodies(
        native.GenerateBody,
        {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]},
        plain=(native.FunctionDeclaration, native.GoogleSearch, native.SpeechConfig),
    ),
    "responses": Bodies(
        responses.ResponsesRequest,
        {"model": "m", "input": [TURN]},
        {
            "message": responses.MessageItem,
            "function_call": responses.FunctionCall,
            "function_call_output": responses.CallOutput,
            "custom_tool_call": responses.CustomCall,
            "reasoning": responses.ReasoningItem,
            "web_search_call": responses.ToolItem,
            "new": responses.Kind,
            "image_generation_call": responses.ImageItem,
            "input_text": responses.TextPart,
            "output_text": responses.OutputText,
            "refusal": responses.RefusalPart,
            "input_file": responses.FilePart,
            "input_image": responses.ImagePart,
            "input_audio": responses.AudioPart,
            "function": FunctionDefinition,
            "custom": responses.CustomTool,
            "web_search": responses.WebSearchTool,
            "file_search": responses.FileSearchTool,
            "allowed_tools": responses.AllowedTools,
        },
        (responses.NestedFunction, responses.MessageItem),
    ),
}


def test_every_format_is_tried() -> None:
    assert BODIES.keys() == FORMATS.keys()


@pytest.mark.parametrize("name", BODIES)
def test_the_body_that_is_right_is_accepted(name: str) -> None:
    assert kept(name, BODIES[name].right)


@pytest.mark.parametrize("name", BODIES)
def test_an_accepted_body_satisfies_the_rules(name: str) -> None:
    accepted = 0

    @settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
    @given(BODIES[name].some())
    def try_one(body: object) -> None:
        nonlocal accepted
        accepted += kept(name, body)

    try_one()
    assert accepted > 30  # otherwise nothing was tested


def kept(name: str, body: object) -> bool:
    """Return whether the body is accepted; if so, check that it keeps the rules."""
    try:
        request = FORMATS[name].decode_request(json.dumps(body).encode(), {}, "m").canonical
    except UmgError:
        return False
    check(request)
    return True
