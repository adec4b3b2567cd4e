"""Bodies and lines that Ollama's clients accept; the vendor's own client in Python reads each."""

import json
from collections.abc import Iterator

import msgspec
import pytest
from ollama import ChatResponse, GenerateResponse

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.ollama import OLLAMA_CHAT, OLLAMA_GENERATE
from umg_grpc.wire.text_format_interface import TextFace

Json = dict[str, object]
REQUEST = pb.GenerateRequest(model="m")
PNG = b"\x89PNG\r\n\x1a\n0000"
FACES = pytest.mark.parametrize("face", [OLLAMA_CHAT, OLLAMA_GENERATE], ids=lambda face: face.name)


def text(words: str, *logprobs: pb.TokenLogprob) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=words, logprobs=logprobs))


def thoughts(*words: str, summaries: tuple[str, ...] = ()) -> pb.Part:
    return pb.Part(reasoning=pb.ReasoningPart(texts=words, summaries=summaries))


def call(call_id: str, name: str, arguments: str) -> pb.Part:
    return pb.Part(tool_call=pb.ToolCall(call_id=call_id, name=name, arguments_json=arguments))


def image(data: bytes = PNG, kind: "pb.MediaKind.ValueType" = pb.MEDIA_KIND_IMAGE) -> pb.Part:
    return pb.Part(media=pb.MediaPart(kind=kind, data=data, mime_type="image/png"))


def answer(*parts: pb.Part, reason: "pb.FinishReason.ValueType" = pb.FINISH_REASON_STOP) -> pb.GenerateResponse:
    candidate = pb.Candidate(message=pb.Message(role=pb.ROLE_ASSISTANT, parts=parts), finish_reason=reason)
    usage = pb.Usage(input_tokens=3, output_tokens=2)
    response = pb.GenerateResponse(response_id="r", model="m", candidates=[candidate], usage=usage)
    response.create_time.seconds = 1700000000
    return response


def whole(response: pb.GenerateResponse, face: TextFace = OLLAMA_CHAT) -> Json:
    found: Json = msgspec.json.decode(face.encode_response(response, REQUEST))
    return found


def lines(response: pb.GenerateResponse, face: TextFace = OLLAMA_CHAT) -> list[Json]:
    encoder = face.stream_encoder(REQUEST)
    stream = encoder.feed(response_to_events(response)) + encoder.close()
    assert encoder.close() == b"", "the end is sent once"
    assert stream.endswith(b"}\n")
    # as the client in Python splits them, at every line end of Unicode
    return [json.loads(line) for line in stream.decode().splitlines()]


def merged(parts: list[Json]) -> Json:
    """Aggregate lines as clients do: texts are joined, lists too, and the last line has the rest."""
    found = dict(parts[-1])
    for part in reversed(parts[:-1]):
        for name, value in _content(part):
            target = found["message"] if "message" in part and name != "logprobs" else found
            assert isinstance(target, dict)
            target[name] = value + target[name] if target.get(name) else value
    return found


def _content(part: Json) -> Iterator[tuple[str, str | list[object]]]:
    message = part.get("message", part)
    assert isinstance(message, dict)
    names = ("content", "response", "thinking", "tool_calls", "image")
    yield from ((name, message[name]) for name in names if message.get(name))
    if logprobs := part.get("logprobs"):
        assert isinstance(logprobs, list)
        yield "logprobs", logprobs


SAMPLES = [
    answer(),
    answer(text("hi")),
    answer(thoughts("so", "then"), text("hi\u2028there\x85\u2029"), call("c", "f", '{"a": 1}'), call("d", "g", "")),
    answer(thoughts(summaries=("one", "two")), thoughts("three", summaries=("left out",)), text("hi")),
    answer(image(), text("a picture")),
    answer(pb.Part(refusal=pb.RefusalPart(text="no")), reason=pb.FINISH_REASON_REFUSAL),
    answer(text("cut"), reason=pb.FINISH_REASON_LENGTH),
    answer(
        text(
            "hi",
            pb.TokenLogprob(
                token="hi", logprob=-1, raw_bytes=b"hi", alternatives=[pb.TokenLogprob(token="ho", logprob=-2)]
            ),
        )
    ),
    pb.GenerateResponse(block_reason="SAFETY"),
    pb.GenerateResponse(candidates=[pb.Candidate(index=1), pb.Candidate(index=0)]),
]


@FACES
@pytest.mark.parametrize("response", SAMPLES, ids=range(len(SAMPLES)))
def test_a_stream_has_the_content_of_the_whole_body(response: pb.GenerateResponse, face: TextFace) -> None:
    parts = lines(response, face)
    assert merged(parts) == whole(response, face)
    assert [part["done"] for part in parts] == [False] * (len(parts) - 1) + [True]


@FACES
@pytest.mark.parametrize("response", SAMPLES, ids=range(len(SAMPLES)))
def test_the_vendors_client_reads_each_line(response: pb.GenerateResponse, face: TextFace) -> None:
    kind = ChatResponse if face is OLLAMA_CHAT else GenerateResponse
    for part in [*lines(response, face), whole(response, face)]:
        read = kind(**part)
        assert read.model == "m"
        assert (read.done_reason is not None) == (read.done is True)


def test_a_whole_chat_has_all_members() -> None:
    found = whole(SAMPLES[2])
    assert found == {
        "model": "m",
        "created_at": "2023-11-14T22:13:20Z",
        "message": {
            "role": "assistant",
            "content": "hi\u2028there\x85\u2029",
            "thinking": "so\n\nthen",
            "tool_calls": [
                {"id": "c", "function": {"index": 0, "name": "f", "arguments": {"a": 1}}},
                {"id": "d", "function": {"index": 1, "name": "g", "arguments": {}}},
            ],
        },
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 3,
        "eval_count": 2,
    }


def test_a_whole_text_has_all_members() -> None:
    found = whole(SAMPLES[4], OLLAMA_GENERATE)
    assert (found["response"], found["image"], found["done_reason"]) == ("a picture", "iVBORw0KGgowMDAw", "stop")


def test_filtered_and_cut_answers_have_another_reason() -> None:
    assert [whole(SAMPLES[at])["done_reason"] for at in (5, 6, 8)] == ["content_filter", "length", "content_filter"]


def test_arguments_that_are_no_object_stay_readable() -> None:
    [made] = whole(answer(call("c", "f", "[1]")))["message"]["tool_calls"]  # type: ignore[index]
    assert made["function"]["arguments"] == {"raw_arguments": "[1]"}


def test_a_stream_of_pieces_is_sent_as_it_comes_and_calls_when_they_are_complete() -> None:
    events = list(response_to_events(answer(text("hi"), call("c", "f", '{"a": 1}'))).events)
    encoder = OLLAMA_CHAT.stream_encoder(REQUEST)
    written = [encoder.feed(pb.StreamGenerateResponse(events=[event])) for event in events]
    kinds = [event.WhichOneof("kind") for event in events]
    assert [kind for kind, line in zip(kinds, written, strict=True) if line] == ["text_delta", "part_ended"]
    assert encoder.retained_bytes == 0


def test_indented_arguments_are_on_one_line() -> None:
    [first, last] = lines(answer(call("c", "f", '{\n  "a": 1\r\n}')))
    assert first["message"]["tool_calls"][0]["function"]["arguments"] == {"a": 1}  # type: ignore[index]
    assert last["done"]


def test_a_cut_call_is_sent_at_the_end() -> None:
    encoder = OLLAMA_CHAT.stream_encoder(REQUEST)
    encoder.feed(pb.StreamGenerateResponse(events=[pb.GenerateEvent(part_started=call("c", "f", ""))]))
    assert encoder.retained_bytes > 0
    first, last = (json.loads(line) for line in encoder.close().splitlines())
    assert (first["message"]["tool_calls"][0]["id"], last["done"]) == ("c", True)


def test_an_error_is_the_last_line() -> None:
    encoder = OLLAMA_CHAT.stream_encoder(REQUEST)
    error = UmgError(pb.ERROR_REASON_UPSTREAM_CUT, "it ended\u2028early")
    assert encoder.error(error) == b'{"error":"it ended\\u2028early"}\n'
    assert encoder.feed(response_to_events(answer(text("hi")))) + encoder.close() == b""


def test_a_heartbeat_is_part_of_the_next_line() -> None:
    for face in (OLLAMA_CHAT, OLLAMA_GENERATE):
        encoder = face.stream_encoder(REQUEST)
        [line] = (face.heartbeat * 3 + encoder.close()).splitlines()
        assert json.loads(line)["done"] is True


@FACES
def test_durations_are_those_of_the_given_clock(face: TextFace) -> None:
    times = iter([5, 12])
    assert face.timed is not None
    encoder = face.timed(lambda: next(times)).stream_encoder(REQUEST)
    stream = encoder.feed(response_to_events(answer(text("hi"))))
    last = json.loads((stream + encoder.close()).splitlines()[-1])
    assert [last[f"{name}_duration"] for name in ("total", "load", "prompt_eval", "eval")] == [12, 0, 5, 7]
    body = json.loads(face.timed(lambda: 9).encode_response(answer(text("hi")), REQUEST))
    assert [body[f"{name}_duration"] for name in ("total", "load", "prompt_eval", "eval")] == [9, 0, 0, 9]


@pytest.mark.parametrize(
    ("keep_alive", "reason"),
    [("null", "load"), ('"5m"', "load"), ("-1", "load"), ("0", "unload"), ('"0"', "unload"), ('"0s"', "unload")],
)
@FACES
def test_a_request_without_a_conversation_loads_the_model(face: TextFace, keep_alive: str, reason: str) -> None:
    body = f'{{"model":"m","keep_alive":{keep_alive}}}'.encode()
    request = face.decode_request(body, {}).canonical
    assert face.encode_empty is not None
    found = msgspec.json.decode(face.encode_empty(request, "2026-01-01T00:00:00Z"))
    assert (found["model"], found["done"], found["done_reason"]) == ("m", True, reason)
    assert found["created_at"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (text("a"), True),
        (thoughts("a"), True),
        (call("c", "f", ""), True),
        (image(), True),
        (image(kind=pb.MEDIA_KIND_AUDIO), False),
        (image(b""), False),
        (pb.Part(server_tool_call=pb.ServerToolCall(name="web_search")), False),
        (pb.Part(), True),
    ],
    ids=range(8),
)
def test_parts_that_a_response_cannot_express_are_known(part: pb.Part, expected: bool) -> None:
    assert OLLAMA_GENERATE.can_express(part) is expected
    assert OLLAMA_CHAT.can_express(part) is (expected and not part.HasField("media"))


ERRORS = [
    (UmgError(pb.ERROR_REASON_INVALID_FIELD, "`model`: wrong", field="model"), "`model`: wrong"),
    (
        UmgError(pb.ERROR_REASON_MODEL_NOT_FOUND, "The model `x` does not exist. Did you mean `y`?", model="x"),
        "model 'x' not found, or this key may not use it. Did you mean `y`?",
    ),
    (
        UmgError(pb.ERROR_REASON_MODEL_NOT_FOUND, "The model `x` does not exist.", model="x"),
        "model 'x' not found, or this key may not use it.",
    ),
]


@pytest.mark.parametrize(("error", "message"), ERRORS, ids=range(len(ERRORS)))
def test_an_error_is_a_text(error: UmgError, message: str) -> None:
    assert msgspec.json.decode(OLLAMA_CHAT.encode_error(error, 400)) == {"error": message}


def test_a_missing_key_has_the_remedy() -> None:
    error = UmgError(pb.ERROR_REASON_MISSING_KEY, "no API key was sent")
    assert b"OLLAMA_API_KEY" in OLLAMA_CHAT.encode_error(error, 401)
