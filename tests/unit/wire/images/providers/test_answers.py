"""Answers and streams of image providers that deviate from the usual ones."""

import base64
import json
from dataclasses import dataclass

import pytest

from tests.support.error_checks import raises_error
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.images.provider_protocol_interface import ImageStreamDecoder
from umg_grpc.wire.images.providers import IMAGE_PROTOCOLS

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x03" + b"\xff\xfe\xfd" * 50
B64 = base64.b64encode(PNG).decode()


@dataclass(frozen=True)
class Spelling:
    id: str
    text: str  # JSON


SPELLINGS = [
    Spelling("plain", json.dumps(B64)),
    Spelling("escaped slashes", json.dumps(B64).replace("/", "\\/")),
    Spelling("a data URL", json.dumps(f"data:image/png;base64,{B64}")),
    Spelling("without padding", json.dumps(B64.rstrip("="))),
    Spelling("URL-safe", json.dumps(B64.replace("+", "-").replace("/", "_"))),
    Spelling("line ends", json.dumps("\n".join(B64[i : i + 76] for i in range(0, len(B64), 76)))),
]


@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda case: case.id)
def test_the_bytes_of_an_image_are_read_in_every_spelling(spelling: Spelling) -> None:
    body = b'{"data":[{"b64_json":%b}]}' % spelling.text.encode()
    image = IMAGE_PROTOCOLS["images"].decode_response(body, pb.GenerateImageRequest()).result.images[0]
    assert (image.data, image.mime_type, image.width, image.height) == (PNG, "image/png", 2, 3)


@dataclass(frozen=True)
class Unreadable:
    id: str
    protocol: str
    body: str


UNREADABLE = [
    *(
        Unreadable(f"{text!r}", protocol, text)
        for protocol in IMAGE_PROTOCOLS
        for text in ("", "null", "[]", "{}", "<html>", '{"data":', '{"output":null,"data":null}', '"x"', "[" * 5000)
    ),
    *(
        Unreadable(f"{text!r}", protocol, text)
        for protocol in ("images", "umg_images", "ark_images")
        for text in ('{"data":[]}', '{"data":[{}]}', '{"data":[{"b64_json":""}]}', '{"data":[{"b64_json":"%"}]}')
    ),
    *(
        Unreadable(f"base64 with {name}", "images", json.dumps({"data": [{"b64_json": text}]}))
        for name, text in (
            ("padding before its end", f"{B64[:3]}={B64[4:]}"),
            ("a letter of no alphabet", f"{B64[:5000]}!{B64[5001:]}"),
            ("a character too few for a byte", f"{B64.rstrip('=')}AAAAA"[:101]),
        )
    ),
    Unreadable("an empty envelope", "umg_images", '{"code":200,"msg":"ok","data":{"data":null}}'),
    Unreadable("a number as an image", "images", '{"data":[{"b64_json":5}]}'),
    Unreadable("no choices", "dashscope_images", '{"output":{"choices":[]}}'),
    Unreadable("a text only", "dashscope_images", '{"output":{"choices":[{"message":{"content":"no"}}]}}'),
    Unreadable("broken data", "native_images", '{"candidates":[{"content":{"parts":[{"inlineData":{"data":"%%"}}]}}]}'),
]


@pytest.mark.parametrize("case", UNREADABLE, ids=lambda case: f"{case.protocol}: {case.id[:40]}")
def test_an_answer_without_images_is_an_ambiguous_failure(case: Unreadable) -> None:
    with raises_error(reason=pb.ERROR_REASON_UPSTREAM_FAILED, failure=Failure.AMBIGUOUS):
        IMAGE_PROTOCOLS[case.protocol].decode_response(case.body.encode(), pb.GenerateImageRequest())


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("moderation_blocked", pb.ERROR_REASON_CONTENT_BLOCKED),
        ("rate_limit_exceeded", pb.ERROR_REASON_UPSTREAM_RATE_LIMITED),
        ("later", pb.ERROR_REASON_UPSTREAM_FAILED),
    ],
)
def test_an_error_with_status_200_is_classified_by_its_code(code: str, reason: "pb.ErrorReason.ValueType") -> None:
    body = json.dumps({"error": {"code": code, "message": "No."}}).encode()
    with raises_error(reason=reason):
        IMAGE_PROTOCOLS["images"].decode_response(body, pb.GenerateImageRequest())


# --- streams


def decoder(protocol: str, n: int = 1) -> ImageStreamDecoder:
    made = IMAGE_PROTOCOLS[protocol].stream_decoder
    assert made is not None
    return made(pb.GenerateImageRequest(model="public", n=n))


def frame(**fields: object) -> bytes:
    return f"data: {json.dumps(fields)}\n\n".encode()


COMPLETED = frame(type="image_generation.completed", b64_json=B64)
SUCCEEDED = frame(type="image_generation.partial_succeeded", image_index=0, url="https://files.example/1")
REFUSED = {"code": "OutputImageSensitiveContentDetected", "message": "No."}


def kinds(decoding: ImageStreamDecoder, frames: bytes) -> list[str | None]:
    message = decoding.feed(frames)
    return [event.WhichOneof("kind") for event in message.events] if message is not None else []


def test_a_stream_ends_with_the_last_requested_image() -> None:
    decoding = decoder("images", n=2)
    assert kinds(decoding, COMPLETED) == ["started", "completed"]
    assert not decoding.done
    message = decoding.feed(COMPLETED + COMPLETED)
    assert message is not None
    assert [event.completed.image_index for event in message.events] == [1]
    assert decoding.done
    assert decoding.close().events[0].finished.result.usage.image_count == 2


@pytest.mark.parametrize(
    ("protocol", "frames"), [("images", b""), ("images", b": keep\n\n"), ("ark_images", b""), ("ark_images", SUCCEEDED)]
)
def test_a_stream_without_its_end_is_cut(protocol: str, frames: bytes) -> None:
    decoding = decoder(protocol, n=2)
    decoding.feed(frames)
    with raises_error(reason=pb.ERROR_REASON_UPSTREAM_CUT):
        decoding.close()


def test_a_stream_with_fewer_images_is_complete_with_its_end_marker() -> None:
    decoding = decoder("images", n=2)
    decoding.feed(COMPLETED + b"data: [DONE]\n\n")
    assert decoding.close().events[0].finished.result.usage.image_count == 1


@pytest.mark.parametrize(
    "frames",
    [
        b'event: error\ndata: {"error":{"code":"moderation_blocked","message":"No.","status":400}}\n\n',
        b'data: {"error":{"code":"moderation_blocked","message":"No."}}\n\n',
        b'data: {"type":"error","code":"moderation_blocked","message":"No."}\n\n',
    ],
)
def test_an_error_event_raises_its_error(frames: bytes) -> None:
    with raises_error(reason=pb.ERROR_REASON_CONTENT_BLOCKED):
        decoder("images").feed(frames)


def test_a_group_whose_images_all_fail_raises_the_first_failure() -> None:
    decoding = decoder("ark_images")
    failed = frame(type="image_generation.partial_failed", image_index=0, error=REFUSED)
    assert kinds(decoding, failed + frame(type="image_generation.completed", usage={})) == []
    with raises_error(reason=pb.ERROR_REASON_CONTENT_BLOCKED):
        decoding.close()


@pytest.mark.parametrize("protocol", ["images", "ark_images"])
def test_an_event_that_is_not_json_is_an_error_and_an_unknown_one_is_ignored(protocol: str) -> None:
    with pytest.raises(UmgError):
        decoder(protocol).feed(b"data: {\n\n")
    assert kinds(decoder(protocol), frame(type="later.kind", at=1)) == []


def test_a_gateway_reports_the_failed_images_of_a_group_and_ends_with_its_body() -> None:
    made = IMAGE_PROTOCOLS["umg_images"].stream_decoder
    assert made is not None
    decoding = made(pb.GenerateImageRequest(sequential_image_generation=pb.SEQUENTIAL_IMAGE_GENERATION_AUTO))
    failed = frame(
        type="image_generation.partial_failed", image_index=1, code="content_policy_violation", message="No."
    )
    message = decoding.feed(COMPLETED + failed)
    assert message is not None
    failure = message.events[-1].failed
    assert (failure.image_index, failure.code, failure.message) == (1, "content_policy_violation", "No.")
    assert not decoding.done
    assert decoding.close().events[0].finished.result.usage.image_count == 1
