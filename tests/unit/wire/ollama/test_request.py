"""Bodies of callers of Ollama's API: their canonical form, and the errors of wrong ones."""

import base64
from dataclasses import dataclass, field

import msgspec
import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.ollama import OLLAMA_CHAT, OLLAMA_GENERATE
from umg_grpc.wire.text_format_interface import FaceRequest, TextFace

INVALID, MISSING, UNSUPPORTED = (
    pb.ERROR_REASON_INVALID_FIELD,
    pb.ERROR_REASON_MISSING_FIELD,
    pb.ERROR_REASON_UNSUPPORTED_FIELD,
)
TURN = {"role": "user", "content": "Hi"}
PNG = b"\x89PNG\r\n\x1a\n0000"
WAV = b"RIFF0000WAVEfmt "


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def decoded(face: TextFace = OLLAMA_CHAT, **body: object) -> FaceRequest:
    document = {"model": "m", **({"messages": [TURN]} if face is OLLAMA_CHAT else {"prompt": "Hi"}), **body}
    return face.decode_request(msgspec.json.encode(document), {})


def chat(*messages: object) -> pb.GenerateRequest:
    return decoded(messages=messages).canonical


def call(name: str, call_id: str | None = None) -> dict[str, object]:
    found: dict[str, object] = {"function": {"name": name, "arguments": {"city": "Oslo"}}}
    return found | ({"id": call_id} if call_id else {})


def ids(request: pb.GenerateRequest) -> tuple[list[str], list[str]]:
    """Return the ids of the calls, and those of the results."""
    parts = [part for message in request.messages for part in message.parts]
    calls = [part.tool_call.call_id for part in parts if part.HasField("tool_call")]
    return calls, [part.tool_result.call_id for part in parts if part.HasField("tool_result")]


@pytest.mark.parametrize("face", [OLLAMA_CHAT, OLLAMA_GENERATE], ids=lambda face: face.name)
def test_a_request_is_streamed_by_default(face: TextFace) -> None:
    assert [decoded(face, **body).stream for body in ({}, {"stream": None}, {"stream": True}, {"stream": False})] == [
        True,
        True,
        True,
        False,
    ]


def test_a_request_keeps_its_body_as_its_source() -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"Hi"}]}'
    source = OLLAMA_CHAT.decode_request(body, {}).canonical.source
    assert (source.format, source.body) == ("ollama_chat", body)


def test_turns_of_all_roles_are_decoded() -> None:
    request = chat(
        {"role": "system", "content": "Be short."},
        TURN,
        {"role": "ASSISTANT", "content": "Hello", "thinking": "A greeting."},
        TURN,
    )
    assert [message.role for message in request.messages] == [
        pb.ROLE_SYSTEM,
        pb.ROLE_USER,
        pb.ROLE_ASSISTANT,
        pb.ROLE_USER,
    ]
    thought, text = request.messages[2].parts
    assert (list(thought.reasoning.texts), text.text.text) == (["A greeting."], "Hello")


def test_images_come_before_the_text_with_the_type_of_their_bytes() -> None:
    url = f"data:image/jpeg;base64,{b64(PNG)}"
    request = chat({"role": "user", "content": "Look", "images": [b64(PNG), b64(WAV), url]})
    *media, text = request.messages[0].parts
    assert [(part.media.mime_type, part.media.kind) for part in media] == [
        ("image/png", pb.MEDIA_KIND_IMAGE),
        ("audio/wav", pb.MEDIA_KIND_AUDIO),
        ("image/png", pb.MEDIA_KIND_IMAGE),
    ]
    assert [part.media.data for part in media] == [PNG, WAV, PNG]
    assert text.text.text == "Look"


def test_results_find_their_calls_by_id_by_name_or_by_order() -> None:
    calls = {"role": "assistant", "tool_calls": [call("a"), call("b"), call("c", "own"), call("d")]}
    results: list[dict[str, object]] = [
        {"role": "tool", "content": "4", "tool_call_id": "own"},
        {"role": "tool", "content": "2", "tool_name": "b"},
        {"role": "tool", "content": "1"},
        {"role": "tool", "content": "3", "name": "d"},
    ]
    (a, b, own, d), answered = ids(chat(TURN, calls, *results))
    assert len({a, b, own, d}) == 4
    assert own == "own"
    assert answered == [own, b, a, d]


def test_a_longer_conversation_begins_with_the_same_ids() -> None:
    turns = [TURN, {"role": "assistant", "tool_calls": [call("a")]}, {"role": "tool", "content": "1", "tool_name": "a"}]
    first, second = ids(chat(*turns, *turns))[0]
    assert second == f"{first}_1"
    assert list(chat(*turns, *turns).messages)[:3] == list(chat(*turns).messages)


def test_arguments_keep_their_bytes() -> None:
    body = b'{"model":"m","messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"b":1.0,"a":2}}}]}]}'
    [part] = OLLAMA_CHAT.decode_request(body, {}).canonical.messages[0].parts
    assert part.tool_call.arguments_json == '{"b":1.0,"a":2}'


def test_options_become_the_fields_of_the_schema_and_the_rest_is_reported() -> None:
    options = {
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 40.0,
        "seed": 7,
        "num_predict": 100,
        "stop": ["\n", ""],
        "presence_penalty": 0.5,
        "frequency_penalty": -1,
        "num_ctx": 4096,
        "repeat_penalty": 1.1,
        "min_p": None,
    }
    request, _, notes = decoded(options=options, keep_alive="5m", x_new=1)
    assert (request.temperature, request.top_p, request.top_k, request.seed) == (0.5, 0.9, 40, 7)
    assert (request.max_output_tokens, list(request.stop_sequences)) == (100, ["\n"])
    assert (request.presence_penalty, request.frequency_penalty) == (0.5, -1)
    assert notes.uncarried == ["x_new", "options.num_ctx", "options.repeat_penalty", "keep_alive"]
    assert notes.indispensable == []


@pytest.mark.parametrize("limit", [-1, -2, 0])
def test_numbers_for_no_limit_leave_the_limit_out(limit: int) -> None:
    request = decoded(options={"num_predict": limit, "top_k": limit}).canonical
    assert not request.HasField("max_output_tokens")
    assert not request.HasField("top_k")


def test_a_negative_seed_leaves_it_to_the_model() -> None:
    assert not decoded(options={"seed": -1}).canonical.HasField("seed")


def test_think_is_a_switch_or_an_amount() -> None:
    on, off, low, unset = (
        decoded(**body).canonical for body in ({"think": True}, {"think": False}, {"think": "low"}, {})
    )
    assert on.reasoning.mode == pb.REASONING_MODE_ENABLED
    assert off.reasoning.mode == pb.REASONING_MODE_DISABLED
    assert (low.reasoning.effort, low.reasoning.mode) == ("low", pb.REASONING_MODE_UNSPECIFIED)
    assert not unset.HasField("reasoning")


def test_a_format_is_json_or_a_schema() -> None:
    schema = {"type": "object", "properties": {"b": {}, "a": {}}}
    assert decoded(format="json").canonical.response_format.HasField("json")
    found = decoded(format=schema).canonical.response_format.json_schema.schema_json
    assert found == msgspec.json.encode(schema).decode()
    for none in ("", None):
        assert not decoded(format=none).canonical.HasField("response_format")


def test_tools_keep_their_schemas() -> None:
    tool = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}}
    [found] = decoded(tools=[tool]).canonical.tools
    assert (found.function.name, found.function.description) == ("f", "d")
    assert found.function.parameters_json == '{"type":"object"}'


def test_a_prompt_becomes_a_turn_after_its_instructions() -> None:
    request = decoded(OLLAMA_GENERATE, system="Be short.", images=[b64(PNG)], logprobs=True, top_logprobs=2).canonical
    assert [part.text.text for part in request.instructions] == ["Be short."]
    [message] = request.messages
    assert (message.role, message.parts[0].media.data, message.parts[1].text.text) == (pb.ROLE_USER, PNG, "Hi")
    assert (request.logprobs, request.top_logprobs) == (True, 2)


def test_values_without_effect_are_accepted() -> None:
    body = {"suffix": "", "template": "", "context": [], "raw": False}
    assert decoded(OLLAMA_GENERATE, **body).notes.uncarried == []


def test_a_request_without_a_conversation_has_no_messages() -> None:
    for face, body in (
        (OLLAMA_CHAT, {"messages": []}),
        (OLLAMA_CHAT, {"messages": None}),
        (OLLAMA_GENERATE, {"prompt": ""}),
        (OLLAMA_GENERATE, {"prompt": None, "system": "s"}),
    ):
        assert not decoded(face, **body).canonical.messages


@dataclass(frozen=True)
class Rejection:
    id: str
    field: str
    body: dict[str, object] = field(default_factory=dict)
    face: TextFace = OLLAMA_CHAT
    reason: "pb.ErrorReason.ValueType" = INVALID
    message: str = ""


def turn(**fields: object) -> dict[str, object]:
    return {"messages": [TURN, {"role": "user", "content": "Hi"} | fields]}


REJECTIONS = [
    Rejection("no model", "model", {"model": None}, reason=INVALID),
    Rejection("an empty model", "model", {"model": ""}),
    Rejection("messages of another type", "messages", {"messages": "Hi"}),
    Rejection("an unknown role", "messages[1].role", turn(role="robot"), message="send one of `system`"),
    Rejection("content of another type", "messages[1].content", turn(content=[{"type": "text"}])),
    Rejection("an image that is no base64", "messages[1].images[0]", turn(images=["@@@"])),
    Rejection("an image of no known type", "messages[1].images[0]", turn(images=[b64(b"hello")]), message="PNG"),
    Rejection(
        "arguments as a text",
        "messages[1].tool_calls[0].function.arguments",
        turn(role="assistant", tool_calls=[{"function": {"name": "f", "arguments": "{}"}}]),
        message="send a JSON object",
    ),
    Rejection(
        "a call without a name",
        "messages[1].tool_calls[0].function.name",
        turn(role="assistant", tool_calls=[{"function": {"arguments": {}}}]),
        reason=MISSING,
    ),
    Rejection("a tool of another kind", "tools[0].type", {"tools": [{"type": "web", "function": {"name": "f"}}]}),
    Rejection("a tool without a function", "tools[0].function", {"tools": [{"type": "function"}]}, reason=MISSING),
    Rejection("an unknown amount of thoughts", "think", {"think": "extreme"}),
    Rejection("a format by another word", "format", {"format": "xml"}, message="`json` or a JSON schema"),
    Rejection("a format of another type", "format", {"format": 3}),
    Rejection("options of another type", "options", {"options": [1]}),
    Rejection("a temperature of another type", "options.temperature", {"options": {"temperature": "hot"}}),
    Rejection("a temperature that is too high", "options.temperature", {"options": {"temperature": 3}}),
    Rejection("a fraction of tokens", "options.num_predict", {"options": {"num_predict": 1.5}}),
    Rejection("a stop of another type", "options.stop[0]", {"options": {"stop": [1]}}),
    Rejection("too many alternatives", "top_logprobs", {"top_logprobs": 21}),
    Rejection("a rendered prompt", "_debug_render_only", {"_debug_render_only": True}, reason=UNSUPPORTED),
    *(
        Rejection(f"a {name}", name, {name: value}, OLLAMA_GENERATE, UNSUPPORTED)
        for name, value in (("suffix", "}"), ("template", "{{.}}"), ("context", [1, 2]), ("raw", True))
    ),
    Rejection("a broken image beside a prompt", "images[0]", {"images": ["@"]}, OLLAMA_GENERATE),
]


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
def test_a_malformed_body_is_rejected_by_the_path_of_its_field(case: Rejection) -> None:
    with pytest.raises(UmgError) as caught:
        decoded(case.face, **case.body)
    assert (caught.value.reason, caught.value.metadata["field"]) == (case.reason, case.field)
    assert case.message in caught.value.message
