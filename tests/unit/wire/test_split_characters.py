"""Characters cut in two between deltas."""

import msgspec
import pytest

from tests.unit.wire.accumulate import accumulate
from tests.unit.wire.streams import decoded
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.split_character_repair import SurrogateJoiner, decode, escape_halves, replace_halves


@pytest.mark.parametrize(
    ("documents", "text"),
    [
        ([rb'"a\ud83d"', rb'"\ude00b"'], "a\U0001f600b"),
        ([rb'"\ud83d"', rb'""', rb'"\ude00"'], "\U0001f600"),
        ([rb'"\uD83D\uDC80 \ud83d"', rb'"\udc80"'], "\U0001f480 \U0001f480"),
        ([rb'"\ud83d"', rb'"x"'], "\ufffdx"),
        ([rb'"\ude00"'], "\ufffd"),
        ([rb'"a\ud83d"'], "a\ufffd"),
        ([b'"a\xf0\x9f"', b'"\x98\x80b"'], "a\U0001f600b"),
        ([b'"\xf0"', b'"\x9f"', b'"\x98"', b'"\x80"'], "\U0001f600"),
        ([b'"\xc3"', b'"x"'], "\ufffdx"),
        ([rb'"\\ud83d"'], "\\ud83d"),
        (
            ['"\U00100000\U00100880"'.encode(), rb'"\ud83d\U00100401"'.replace(rb"\U00100401", "\U00100401".encode())],
            "\U00100000\U00100880\ufffd\U00100401",
        ),
        (['"\U001008ff'.encode() + b'\xf0\x9f"', b'"\x98\x80b"'], "\U001008ff\U0001f600b"),
    ],
    ids=ascii,
)
def test_halves_of_a_character_are_joined_again(documents: list[bytes], text: str) -> None:
    joiner = SurrogateJoiner()
    replace_halves = [joiner.join(msgspec.json.decode(escape_halves(document), type=str)) for document in documents]
    assert "".join([*replace_halves, joiner.rest()]) == text


def test_a_whole_document_has_replacement_characters_for_its_halves() -> None:
    assert decode(msgspec.json.Decoder(), b'{"a":"\\ud83d","b":"\xf0\x9f","c":"\\ud83d\\ude00"}') == {
        "a": "\ufffd",
        "b": "\ufffd\ufffd",
        "c": "\U0001f600",
    }


def test_characters_that_look_like_placeholders_are_kept() -> None:
    assert (
        replace_halves('{"a":"\U00100000\U00100480\U001008ff"}'.encode())
        == '{"a":"\U00100000\U00100480\U001008ff"}'.encode()
    )


# --- in the streams of providers

CHAT, CHAT_END = (
    b'{"id":"c","choices":[{"index":0,"delta":%b}]}',
    b'{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
)
BLOCK = b'{"type":"content_block_start","index":0,"content_block":{"type":"%b","text":"","thinking":"","id":"t","name":"f","input":{}}}'
DELTA = b'{"type":"content_block_delta","index":0,"delta":{"type":"%b","%b":%%b}}'
MESSAGE_END = b'{"type":"message_delta","delta":{"stop_reason":"end_turn"}}'
ITEM = b'{"type":"message","id":"i","role":"assistant","content":[]}'
STREAMS: dict[str, tuple[str, list[bytes], bytes, bytes]] = {
    "chat, text": ("chat", [], CHAT % b'{"content":%b}', CHAT_END),
    "chat, thoughts": ("chat", [], CHAT % b'{"reasoning_content":%b}', CHAT_END),
    "chat, arguments": ("chat", [], CHAT % b'{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":%b}}]}', CHAT_END),
    "messages, text": ("messages", [b'{"type":"message_start","message":{}}', BLOCK % b"text"], DELTA % (b"text_delta", b"text"), MESSAGE_END),
    "messages, thoughts": ("messages", [b'{"type":"message_start","message":{}}', BLOCK % b"thinking"], DELTA % (b"thinking_delta", b"thinking"), MESSAGE_END),
    "messages, arguments": ("messages", [b'{"type":"message_start","message":{}}', BLOCK % b"tool_use"], DELTA % (b"input_json_delta", b"partial_json"), MESSAGE_END),
    "native": ("native", [], b'{"candidates":[{"content":{"parts":[{"text":%b}]}}]}', b'{"candidates":[{"finishReason":"STOP"}]}'),
    "responses": (
        "responses", [b'{"type":"response.created","response":{}}', b'{"type":"response.output_item.added","output_index":0,"item":%b}' % ITEM],
        b'{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":%b}', b'{"type":"response.completed","response":{"status":"completed","output":[]}}',
    ),
}  # fmt: skip
"""Format, events before the deltas, a delta of a text, and the event at the end."""
PIECES = [
    ([rb'"a\ud83d"', rb'"\ude00b"'], "a\U0001f600b"),
    ([b'"a\xf0\x9f"', b'"\x98\x80b"'], "a\U0001f600b"),
    ([rb'"a\ud83d\ude00"', b'"b"'], "a\U0001f600b"),
    ([rb'"a\ud83d"'], "a\ufffd"),
]


@pytest.mark.parametrize(("pieces", "text"), PIECES, ids=ascii)
@pytest.mark.parametrize("name", STREAMS)
def test_a_character_split_between_events_is_joined(name: str, pieces: list[bytes], text: str) -> None:
    face, begun, delta, end = STREAMS[name]
    events = [
        *begun,
        *(delta % piece for piece in pieces),
        end,
        *([b'{"type":"message_stop"}'] if face == "messages" else []),
    ]
    stream = b"".join(b"data: %b\n\n" % event for event in events)
    [part] = (
        accumulate(decoded(TEXT_FORMATS[face], [stream], pb.GenerateRequest(model="m"))).candidates[0].message.parts
    )
    assert (part.text.text or "".join(part.reasoning.texts) or part.tool_call.arguments_json) == text
