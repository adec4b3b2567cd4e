"""Responses and streams of the image paths."""

import base64
import json
from typing import Any

import pytest

from tests.support.images import PNG
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.sse import split
from umg_grpc.wire.core.undecoded_base64_files import EncodedFiles
from umg_grpc.wire.images import IMAGE_EDITS, IMAGES_FACE
from umg_grpc.wire.images.response import STEP_BYTES
from umg_grpc.wire.unary_format_interface import ClientShape

B64 = base64.b64encode(PNG).decode()
BIG = bytes(range(256)) * (STEP_BYTES // 256 * 2 + 1)
NO_FILES = EncodedFiles(b"")
USAGE = pb.ImageUsage(
    image_count=2, input_tokens=50, input_text_tokens=10, input_image_tokens=40, output_tokens=4160, total_tokens=4210
)
SDK_USAGE = {
    "input_tokens": 50,
    "input_tokens_details": {"text_tokens": 10, "image_tokens": 40},
    "output_tokens": 4160,
    "total_tokens": 4210,
}


def response(*images: pb.Image, **members: Any) -> pb.GenerateImageResponse:
    result = pb.ImageResult(model="m", images=images, **members)
    result.create_time.seconds = 1767323045
    return pb.GenerateImageResponse(result=result)


TWO = response(
    pb.Image(data=PNG, mime_type="image/png", revised_prompt='a "red" kite'),
    pb.Image(url="https://example.com/a.png"),
    usage=USAGE,
    size="1024x1024",
    quality="high",
    background="opaque",
)
DATA = [{"b64_json": B64, "revised_prompt": 'a "red" kite'}, {"url": "https://example.com/a.png"}]


def test_the_documented_shape_is_an_envelope() -> None:
    body = IMAGES_FACE.encode_response(TWO, pb.GenerateImageRequest(), ClientShape.DOCUMENTED)
    assert json.loads(body) == {"code": 200, "msg": "success", "data": {"data": DATA, "created": 1767323045}}


def test_the_shape_of_sdks_has_the_images_at_the_top() -> None:
    body = IMAGES_FACE.encode_response(TWO, pb.GenerateImageRequest(), ClientShape.SDK)
    assert json.loads(body) == {
        "created": 1767323045,
        "data": DATA,
        "usage": SDK_USAGE,
        "size": "1024x1024",
        "quality": "high",
        "background": "opaque",
        "output_format": "png",
    }


def test_a_response_without_reported_properties_has_only_the_images() -> None:
    bare = response(pb.Image(url="https://example.com/a.png"))
    body = IMAGES_FACE.encode_response(bare, pb.GenerateImageRequest(), ClientShape.SDK)
    assert json.loads(body) == {"created": 1767323045, "data": [{"url": "https://example.com/a.png"}]}


@pytest.mark.parametrize("shape", ClientShape)
def test_a_large_response_is_encoded_in_pieces(shape: ClientShape) -> None:
    large = response(pb.Image(data=BIG), pb.Image(data=BIG), pb.Image(url="https://example.com/a.png"))
    pieces = list(IMAGES_FACE.encode_pieces(large, pb.GenerateImageRequest(), shape, NO_FILES))
    assert len(pieces) > 4
    assert max(map(len, pieces)) < 2 * STEP_BYTES
    body = json.loads(b"".join(pieces))
    items = body["data"] if shape is ClientShape.SDK else body["data"]["data"]
    assert [base64.b64decode(item["b64_json"]) for item in items[:2]] == [BIG, BIG]


def test_a_response_without_files_is_one_piece() -> None:
    links = response(*(pb.Image(url=f"https://example.com/{index}") for index in range(4)))
    assert len(list(IMAGES_FACE.encode_pieces(links, pb.GenerateImageRequest(), ClientShape.DOCUMENTED, NO_FILES))) == 1


def test_an_error_has_the_members_of_both_shapes() -> None:
    error = UmgError(pb.ERROR_REASON_INVALID_FIELD, "`n`: too many", field="n")
    assert json.loads(IMAGES_FACE.encode_error(error, 400)) == {
        "code": 400,
        "msg": "`n`: too many",
        "error": {"message": "`n`: too many", "type": "invalid_request_error", "param": "n", "code": "invalid_value"},
    }


def test_a_refused_prompt_has_the_code_of_the_images_api() -> None:
    error = UmgError(pb.ERROR_REASON_CONTENT_BLOCKED, "refused")
    assert json.loads(IMAGES_FACE.encode_error(error, 400))["error"]["code"] == "content_policy_violation"


# --- streams


def image(data: bytes = PNG) -> pb.Image:
    return pb.Image(data=data, mime_type="image/png", width=8, height=6)


def started() -> pb.ImageEvent:
    event = pb.ImageEvent(started=pb.ImageStarted(model="m"))
    event.started.create_time.seconds = 1767323045
    return event


def partial(index: int) -> pb.ImageEvent:
    return pb.ImageEvent(partial=pb.ImagePartial(partial_index=index, image=image()))


def completed(index: int) -> pb.ImageEvent:
    return pb.ImageEvent(completed=pb.ImageCompleted(image_index=index, image=image()))


FINISHED = pb.ImageEvent(finished=pb.ImageFinished(result=pb.ImageResult(usage=USAGE, quality="high")))
FAILED = pb.ImageEvent(failed=pb.ImageFailure(image_index=1, code="generation_failed", message="it failed"))
REQUEST = pb.GenerateImageRequest(quality="low")
COMMON = {"b64_json": B64, "created_at": 1767323045, "size": "8x6", "background": "auto", "output_format": "png"}


def events(frames: bytes) -> list[dict[str, Any]]:
    found = list(split(frames))
    for event in found:
        assert event.data is not None
        assert json.loads(event.data)["type"] == event.name.decode()
    return [json.loads(event.data or b"") for event in found]


@pytest.mark.parametrize(("face", "prefix"), [(IMAGES_FACE, "image_generation"), (IMAGE_EDITS, "image_edit")])
def test_a_stream_has_the_events_of_sdks(face: Any, prefix: str) -> None:
    encoder = face.stream_encoder(REQUEST)
    assert encoder.feed(pb.StreamGenerateImageResponse(events=[started()])) == b""
    drafts = events(encoder.feed(pb.StreamGenerateImageResponse(events=[partial(0), partial(1)])))
    kind = {"type": f"{prefix}.partial_image", **COMMON, "quality": "low", "image_index": 0}
    assert drafts == [kind | {"partial_image_index": index} for index in (0, 1)]
    assert encoder.feed(pb.StreamGenerateImageResponse(events=[completed(0)])) == b""
    [last] = events(encoder.feed(pb.StreamGenerateImageResponse(events=[FINISHED])))
    kind = {"type": f"{prefix}.completed", **COMMON, "quality": "high", "image_index": 0}
    assert last == {**kind, "usage": SDK_USAGE}
    assert encoder.close() == b""


def test_every_image_has_the_quality_that_the_start_states() -> None:
    first = started()
    first.started.quality, first.started.background = "medium", "opaque"
    message = pb.StreamGenerateImageResponse(events=[first, partial(0), completed(0), completed(1)])
    encoder = IMAGES_FACE.stream_encoder(pb.GenerateImageRequest(quality="auto", background="auto"))
    found = events(encoder.feed(message) + encoder.close())
    assert [(event["quality"], event["background"]) for event in found] == [("medium", "opaque")] * 3


def test_the_images_of_a_group_come_one_by_one_and_the_last_has_the_usage() -> None:
    encoder = IMAGES_FACE.stream_encoder(REQUEST)
    all_events = [started(), completed(0), FAILED, completed(2), FINISHED]
    found = events(b"".join(encoder.feed(pb.StreamGenerateImageResponse(events=[event])) for event in all_events))
    assert [event["type"].partition(".")[2] for event in found] == ["completed", "partial_failed", "completed"]
    assert [event["image_index"] for event in found] == [0, 1, 2]
    assert ["usage" in event for event in found] == [False, False, True]
    assert all("error" not in event for event in found)  # clients raise an exception for that member


def test_a_broken_stream_ends_with_the_finished_images_and_an_error() -> None:
    encoder = IMAGES_FACE.stream_encoder(REQUEST)
    encoder.feed(pb.StreamGenerateImageResponse(events=[started(), completed(0)]))
    found = list(split(encoder.error(UmgError(pb.ERROR_REASON_UPSTREAM_CUT, "cut"))))
    assert [event.name for event in found] == [b"image_generation.completed", b"error"]
    body = json.loads(found[1].data or b"")
    assert (body["error"]["message"], body["msg"], body["code"]) == ("cut", "cut", 502)
