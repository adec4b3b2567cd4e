"""JSON that is kept unchanged may have line ends between its tokens and Unicode's line separators in its strings: no
stream may break there.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle

import pytest
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.wire.laws import modest
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.core.sse import one_line
from umg_grpc.wire.text_format_interface import StreamEncoder

MARK = "MARK"
BLANKS = ("\n", "\r", "\r\n", "\n  ", "\t", "")
SEPARATORS = ("\u2028", "\u2029", "\x85", "\n", "\r", "\x0b", "\x1c")
TOOLS = ("f", "web_search", "file_search", "code_execution")
REQUEST = pb.GenerateRequest(model="m")

ENCODERS: dict[str, Callable[[pb.GenerateRequest], StreamEncoder]] = {
    **{name: codec.stream_encoder for name, codec in TEXT_FORMATS.items()},
    **{f"{name} array": codec.array_encoder for name, codec in TEXT_FORMATS.items() if codec.array_encoder is not None},
}


# --- the fields


def json_paths(kind: Descriptor, above: tuple[Descriptor, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every string field below a message that keeps JSON unchanged."""
    for field in kind.fields:
        if field.message_type is not None and field.message_type not in (kind, *above):
            for path in json_paths(field.message_type, (kind, *above)):
                yield field.name, *path
        elif field.type == FieldDescriptor.TYPE_STRING and (field.name == "json" or field.name.endswith("_json")):
            yield (field.name,)


def filled(message: Message, path: tuple[str, ...], text: str, face: str, tool: str) -> None:
    """Set the field at `path` to `text`, and the sibling fields that decide where its message is shown."""
    inner = message
    for name in path[:-1]:
        field = inner.DESCRIPTOR.fields_by_name[name]
        value = getattr(inner, name)
        inner = value.add() if field.is_repeated else value
        inner.SetInParent()
    setattr(inner, path[-1], text)
    for name, value in {"format": face, "name": tool, "type": "x", "call_id": "c1"}.items():
        if (field := inner.DESCRIPTOR.fields_by_name.get(name)) and field.type == FieldDescriptor.TYPE_STRING:
            setattr(inner, name, value)


@dataclass(frozen=True)
class JsonField:
    """A field that keeps JSON: of a response, of an event, or of a request that a response repeats."""

    root: type[Message]
    path: tuple[str, ...]

    @property
    def id(self) -> str:
        return ".".join((self.root.DESCRIPTOR.name, *self.path))

    def stream(self, text: str, face: str, tool: str) -> tuple[pb.GenerateRequest, list[pb.GenerateEvent]]:
        """Return the request, and the events of a response that has the JSON in this field."""
        if self.root is pb.GenerateEvent:
            return REQUEST, self._events(text, face, tool)
        request, response = self.whole(text, face, tool)
        return request, list(response_to_events(response).events)

    def whole(self, text: str, face: str, tool: str) -> tuple[pb.GenerateRequest, pb.GenerateResponse]:
        """Return the request, and a response that has the JSON in this field."""
        request, response = pb.GenerateRequest(model="m"), pb.GenerateResponse(response_id="r", model="m")
        candidate = response.candidates.add(finish_reason=pb.FINISH_REASON_STOP)
        candidate.message.parts.add().text.text = "hi"
        candidate.message.parts.add().server_tool_call.MergeFrom(pb.ServerToolCall(name=tool, call_id="c1"))
        filled(request if self.root is pb.GenerateRequest else response, self.path, text, face, tool)
        for other in response.candidates[1:]:  # the one that `filled` added
            candidate.MergeFrom(other)
        del response.candidates[1:]
        return request, response

    def _events(self, text: str, face: str, tool: str) -> list[pb.GenerateEvent]:
        event = pb.GenerateEvent(part_index=1)
        filled(event, self.path, text, face, tool)
        beginning = pb.Part(text=pb.TextPart())
        if self.path[0] == "part_updated":
            beginning = pb.Part()
            beginning.CopyFrom(event.part_updated)
            if self.path[1] == "server_tool_call":  # its input comes last
                beginning.server_tool_call.ClearField(self.path[-1])
        search = pb.Part(server_tool_call=pb.ServerToolCall(name=tool, call_id="c1"))
        events = [
            pb.GenerateEvent(started=pb.GenerationStarted(response_id="r", model="m")),
            pb.GenerateEvent(part_started=search),
            pb.GenerateEvent(part_index=1, part_started=beginning),
            event,
            pb.GenerateEvent(part_index=1, part_ended=pb.PartEnded()),
            pb.GenerateEvent(part_ended=pb.PartEnded()),
        ]
        if self.path[0] == "part_started":
            del events[2]
        if self.path[0] != "finished":
            events.append(pb.GenerateEvent(finished=pb.CandidateFinished(finish_reason=pb.FINISH_REASON_STOP)))
        return events


JSON_FIELDS = [
    JsonField(root, path)
    for root in (pb.GenerateRequest, pb.GenerateResponse, pb.GenerateEvent)
    for path in json_paths(root.DESCRIPTOR)
]

# Fields that no stream shows: parts of the prompt, and options that no response repeats.
PROMPT = ("messages", "instructions", "prediction")
UNSHOWN = {
    "GenerateRequest.audio_output.voice_json",
    "GenerateRequest.moderation_json",
    "GenerateRequest.response_format.enum_text.schema_json",
    *(f"{root}.tool_result.result_json" for root in ("GenerateResponse.candidates.message.parts", "GenerateEvent.part_started", "GenerateEvent.part_updated")),
    "GenerateEvent.opaque.json",
}  # fmt: skip


# --- the JSON


def written(value: object, blanks: Iterator[str]) -> str:
    """Return JSON with blanks around each token."""
    match value:
        case dict():
            members = (f"{written(name, blanks)}:{written(inner, blanks)}" for name, inner in value.items())
            return f"{next(blanks)}{{{','.join(members)}}}{next(blanks)}"
        case list():
            return f"{next(blanks)}[{','.join(written(inner, blanks) for inner in value)}]{next(blanks)}"
        case _:
            return f"{next(blanks)}{json.dumps(value, ensure_ascii=False)}{next(blanks)}"


texts = st.lists(st.sampled_from([*SEPARATORS, "a", " ", "\\", '"', "é", "’", "\xa0", "\U0001f600"]), max_size=8).map(
    "".join
)
objects = st.builds(lambda text, rest: {"mode": [MARK + text], text: rest}, texts, st.none() | texts | st.lists(texts))
blanks = st.lists(st.sampled_from(BLANKS), min_size=1, max_size=7)
WORST = {"mode": [MARK + "".join(SEPARATORS)], "x": None}


# --- the readers


def read(name: str, stream: bytes) -> object:
    """Return the result of a strict reader. Fail on lines that no encoder meant; in native, as older google-genai
    clients, also on a line break of `str.splitlines`.
    """
    text = stream.decode()
    if name.endswith("array"):
        assert "\r" not in (plain := text.replace(",\r\n", ","))
        assert "\n" not in plain
        return json.loads(text)
    assert "\r" not in text
    assert name != "native" or text.splitlines() == text.split("\n")[:-1]
    *events, rest = text.split("\n\n")
    assert rest == ""
    return [_data(event.split("\n"), named=name in ("responses", "messages")) for event in events]


def _data(lines: list[str], *, named: bool) -> object:
    if named:
        assert lines[0].startswith("event: "), lines
        *_, line = lines
        assert len(lines) == 2
    else:
        (line,) = lines
    assert line.startswith("data: ")
    if line == "data: [DONE]":
        return None
    data = json.loads(line.removeprefix("data: "))
    if named:
        assert lines[0] == f"event: {data['type']}"
    return data


def marked(value: object) -> set[str]:
    """Return the marked texts within a value, also in texts that are JSON themselves."""
    match value:
        case dict():
            return set().union(*map(marked, value), *map(marked, value.values()))
        case list():
            return set().union(*map(marked, value))
        case str() if MARK in value:
            try:
                return marked(json.loads(value))
            except ValueError:
                return {value}
        case _:
            return set()


def streamed(name: str, json_field: JsonField, text: str, tool: str) -> object:
    """Return the result of the reader for a stream that has the text in that place."""
    request, events = json_field.stream(text, name.removesuffix(" array"), tool)
    encoder = ENCODERS[name](request)
    return read(name, encoder.feed(pb.StreamGenerateResponse(events=events)) + encoder.close())


@settings(modest, max_examples=400)
@given(json_field=st.sampled_from(JSON_FIELDS), value=objects, around=blanks, tool=st.sampled_from(TOOLS))
def test_raw_json_with_line_breaks_is_encoded_on_one_line_of_a_stream(
    json_field: JsonField, value: dict[str, object], around: list[str], tool: str
) -> None:
    text = written(value, cycle(around))
    for name in ENCODERS:
        assert marked(streamed(name, json_field, text, tool)) <= marked(value), name


@pytest.mark.parametrize(
    "json_field", [p for p in JSON_FIELDS if p.root is not pb.GenerateEvent], ids=lambda json_field: json_field.id
)
@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_raw_json_with_line_breaks_is_valid_in_an_unstreamed_answer(json_field: JsonField, name: str) -> None:
    for tool in TOOLS:
        request, response = json_field.whole(written(WORST, cycle(BLANKS)), name, tool)
        body = json.loads(TEXT_FORMATS[name].encode_response(response, request))
        assert marked(body) <= marked(WORST)


@pytest.mark.parametrize("json_field", JSON_FIELDS, ids=lambda json_field: json_field.id)
def test_every_field_is_read_back_from_the_streams_that_show_it(json_field: JsonField) -> None:
    text = written(WORST, cycle(BLANKS))
    encoders = {name for name in ENCODERS for tool in TOOLS if marked(streamed(name, json_field, text, tool))}
    assert bool(encoders) == (json_field.id not in UNSHOWN and json_field.path[0] not in PROMPT), encoders


@given(objects, blanks)
def test_one_line_is_the_same_json(value: dict[str, object], around: list[str]) -> None:
    text = written(value, cycle(around))
    line = one_line(text.encode()).decode()
    assert json.loads(line) == value
    assert not {"\n", "\r"} & set(line)
