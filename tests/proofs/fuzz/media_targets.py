"""Fuzz targets of images and videos: callers' bodies, and the responses, streams and task queries of every provider."""

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from functools import partial

from tests.support.videos import submission
from tests.unit.wire.images.providers.test_golden import CASES, Case
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.image_format_interface import ImageFormat
from umg_grpc.wire.images import IMAGE_FORMATS, check_inputs
from umg_grpc.wire.images.provider_protocol_interface import ImageProtocol
from umg_grpc.wire.images.providers import IMAGE_PROTOCOLS
from umg_grpc.wire.unary_format_interface import ClientShape
from umg_grpc.wire.video import VIDEO_FACES, VIDEO_PROTOCOLS
from umg_grpc.wire.video.caller_api_interface import EntryFormat
from umg_grpc.wire.video.provider_protocol_interface import ProviderRequest, VideoProtocol
from umg_grpc.wire.video.provider_task_types import ProviderStatus, ProviderTask, Submission

MODEL = "model-1"
HEADERS = {"content-type": "application/json"}
IMAGE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
URL = "https://example.com/a.mp4"
IMAGE_BODIES = (
    {
        "model": MODEL,
        "prompt": "x",
        "n": 1,
        "size": "1024x1024",
        "seed": 1,
        "response_format": "b64_json",
        "image": IMAGE,
        "images": [{"image_url": URL}],
        "output_compression": 1,
        "stream": True,
        "foo": {"a": 1},
    },
    {
        "model": MODEL,
        "input": {"messages": [{"role": "user", "content": [{"image": IMAGE}, {"text": "p"}]}]},
        "parameters": {"n": 1, "size": "10*10", "seed": 1, "watermark": True},
    },
)
IMAGE_ANSWERS = (
    {
        "created": 1,
        "model": MODEL,
        "size": "1024x1024",
        "output_format": "png",
        "data": [{"b64_json": IMAGE, "revised_prompt": "x", "size": "10x10"}, {"url": URL, "mime_type": "image/png"}],
        "usage": {
            "total_tokens": 3,
            "input_tokens": 1,
            "output_tokens": 2,
            "generated_images": 1,
            "input_tokens_details": {"text_tokens": 1, "image_tokens": 0},
        },
        "error": None,
    },
    {
        "request_id": "r",
        "output": {
            "task_id": "t",
            "task_status": "SUCCEEDED",
            "results": [{"url": URL}],
            "choices": [{"message": {"content": [{"image": URL}]}}],
            "message": "m",
            "code": "c",
        },
        "usage": {"image_count": 1, "width": 10, "height": 10, "size": "10*10"},
    },
    {"error": {"message": "m", "code": "c", "type": "t", "param": "p", "status": "INVALID_ARGUMENT", "details": [{}]}},
)
VIDEO_BODIES = (
    {"model": MODEL, "prompt": "x", "seconds": "4", "foo": 1.5, "metadata": {"a": [1.5]}},
    {
        "model": MODEL,
        "prompt": "x",
        "seconds": "4",
        "duration": 4,
        "size": "720x1280",
        "seed": 1,
        "image": URL,
        "foo": {"a": [1, "x"]},
        "metadata": {"a": 1.5},
        "content": [
            {"type": "text", "text": "x"},
            {"type": "image_url", "image_url": {"url": URL}, "role": "first_frame"},
        ],
        "req_key": MODEL,
        "frames": 97,
        "model_name": MODEL,
        "cfg_scale": 0.5,
        "callback_url": URL,
        "external_task_id": "e",
        "parameters": {"prompt": "x", "duration": 4},
    },
)
VIDEO_ANSWERS = (
    {
        "id": "t",
        "task_id": "t",
        "name": "models/m/operations/t",
        "status": "completed",
        "state": "succeeded",
        "progress": 50,
        "created_at": 1,
        "completed_at": 2,
        "expires_at": 3,
        "seconds": "4",
        "size": "720x1280",
        "url": URL,
        "video": {"url": URL, "duration": 4},
        "content": {"video_url": URL, "last_frame_url": URL},
        "usage": {"completion_tokens": 1, "total_tokens": 1},
        "done": True,
        "response": {
            "generateVideoResponse": {"generatedSamples": [{"video": {"uri": URL}}]},
            "videos": [{"gcsUri": URL}],
        },
        "error": {"message": "m", "code": 3},
        "metadata": {"url": URL},
        "file_id": 7,
        "base_resp": {"status_code": 0, "status_msg": "m"},
        "file": {"download_url": URL, "file_id": 7, "bytes": 1},
    },
    {
        "code": 0,
        "message": "m",
        "request_id": "r",
        "data": {
            "task_id": "t",
            "id": "t",
            "status": "succeed",
            "task_status": "succeed",
            "task_status_msg": "m",
            "created_at": 1722769557708,
            "updated_at": 1722769557708,
            "task_result": {"videos": [{"id": "v", "url": URL, "duration": "5"}]},
            "task_info": {"external_task_id": "task_0"},
            "video_url": URL,
            "fail_reason": "m",
            "progress": "50%",
            "resp_data": "{}",
        },
    },
    {
        "request_id": "r",
        "output": {
            "task_id": "t",
            "task_status": "SUCCEEDED",
            "video_url": URL,
            "submit_time": "2026-01-01 00:00:00.1",
            "end_time": "2026-01-01 00:00:00",
            "code": "c",
            "message": "m",
        },
        "usage": {"video_duration": 5, "video_count": 1, "size": "10*10", "SR": 720},
    },
    {"items": [{"id": "t", "status": "succeeded", "content": {"video_url": URL}}], "total": 1, "data": [{"id": "t"}]},
)
KINDS = {"video_e_v1": "text2video", "video_e_3": "text-to-video"}
"""Kind of task in the path of a face."""
FACTS = '{"entry":"video_object","path":"/v1/videos"}'
Check = Callable[[bytes], None]


def encoded(bodies: tuple[object, ...]) -> list[bytes]:
    written = [json.dumps(body).encode() for body in bodies]
    return [*written, *(hostile for body in written for hostile in _with_hostile_values(body))]


def _with_hostile_values(body: bytes) -> Iterator[bytes]:
    """Yield the body with a number that no double can be, and with half of a surrogate pair, in each place of one."""
    for old, new in (
        (rb": -?[0-9][0-9.]*", b": 1e999"),
        (rb': "[^"]*"', rb': "\ud800"'),
        (rb'"[0-9]+[x*][0-9]+"', b'"9999999999x1"'),
    ):
        for place in re.finditer(old, body):
            yield body[: place.start()] + new + body[place.end() :]


def check_image_request(codec: ImageFormat, body: bytes) -> None:
    """Check that a body is refused by UmgError, or its request can be encoded for every provider."""
    try:
        request, notes = codec.decode_request(body, {})
        check_inputs(request)
    except UmgError as error:
        codec.encode_error(error, 400)
        return
    codec.wants_stream(body)
    for protocol in IMAGE_PROTOCOLS.values():
        try:
            json_or_form(protocol.encode_request(request, MODEL, False, notes=notes).body)
        except UmgError:
            continue


def json_or_form(body: bytes) -> None:
    assert body.startswith((b"{", b"--")), body


def check_image_answer(protocol: ImageProtocol, body: bytes) -> None:
    """Check that a response is refused by UmgError, or can be encoded for callers of each format."""
    for status in (400, 500):
        protocol.decode_error(status, HEADERS, body)
    request = pb.GenerateImageRequest(model=MODEL, prompt="x")
    answers = [protocol.decode_response]
    if protocol.tasks is not None:
        answers.append(lambda body, request: protocol.tasks.decode_status(body, request) or pb.GenerateImageResponse())
        with contextlib.suppress(UmgError):
            protocol.tasks.encode_query(protocol.tasks.decode_created(body))
    for decode in answers:
        try:
            answer = decode(body, request)
        except UmgError:
            continue
        answer.SerializeToString()
        for codec in IMAGE_FORMATS.values():
            for shape in ClientShape:
                json.loads(codec.encode_response(answer, request, shape))


def check_image_stream(protocol: ImageProtocol, body: bytes) -> None:
    """Check that a stream ends, with an error or not, and that each format can encode its events."""
    assert protocol.stream_decoder is not None
    request = pb.GenerateImageRequest(model=MODEL, prompt="x")
    decoder, messages = protocol.stream_decoder(request), list[pb.StreamGenerateImageResponse]()
    try:
        for frames in body.split(b"\n\n"):
            if (message := decoder.feed(frames + b"\n\n")) is not None:
                messages.append(message)
        messages.append(decoder.close())
    except UmgError as error:
        failure = error
    else:
        failure = None
    for codec in IMAGE_FORMATS.values():
        encoder = codec.stream_encoder(request)
        for message in messages:
            encoder.feed(message)
        encoder.close() if failure is None else encoder.error(failure)


def check_video_request(codec: EntryFormat, body: bytes) -> None:
    """Check that a body is refused by UmgError, or its task can be encoded for every provider."""
    try:
        request = codec.decode_create(body, {"model": MODEL, "kind": KINDS.get(codec.name, "")})
    except UmgError as error:
        codec.encode_error(error, 400)
        return
    request.SerializeToString()
    task = Submission(task_id="task_0", model=MODEL, request=request)
    for protocol in VIDEO_PROTOCOLS.values():
        try:
            protocol.encode_create(task)
        except UmgError:
            continue


def check_video_answer(protocol: VideoProtocol, body: bytes) -> None:
    """Check that the responses to a submission, a query and a look-up are refused by UmgError, or make a task that each
    caller can read.
    """
    made = submission(MODEL)
    task = ProviderTask(id="t", model=MODEL, facts=FACTS if protocol.name == "umg_video" else "")
    for status in (200, 400):
        if status != 200:
            protocol.decode_error(status, HEADERS, body)
        try:
            task = protocol.decode_created(status, HEADERS, body, made)
            task.id.encode()
            protocol.encode_query([task])
        except UmgError:
            pass
        if protocol.decode_found is not None:
            with contextlib.suppress(UmgError):
                protocol.decode_found(status, HEADERS, body, made)
        if protocol.decode_cancelled is not None:
            with contextlib.suppress(UmgError):
                protocol.decode_cancelled(status, HEADERS, body)
        try:
            statuses = protocol.decode_status(status, HEADERS, body, [task])
        except UmgError:
            continue
        for found in statuses.values():
            _check_status(found)


def _check_status(found: "ProviderStatus | ProviderRequest | UmgError") -> None:
    if not isinstance(found, ProviderStatus):
        return
    shown = pb.VideoTask(task_id="task_0", model=MODEL, state=found.state)
    if found.progress_percent is not None:
        shown.progress_percent = found.progress_percent
    for result in found.results:
        shown.results.add(url=result.url, mime_type=result.mime_type)
    for codec in VIDEO_FACES.values():
        json.loads(codec.encode_task(shown))


def media_checks() -> Iterator[tuple[str, list[bytes], str, Check]]:
    """Yield (name, seeds, `bodies` or `streams`, check) of each target."""
    for name, face in IMAGE_FORMATS.items():
        yield f"{name}-request", encoded(IMAGE_BODIES), "bodies", partial(check_image_request, face)
    for name, images in IMAGE_PROTOCOLS.items():
        golden = [case for case in CASES if case.protocol is images]
        answers = [*encoded(IMAGE_ANSWERS), *_files(golden, "response.json")]
        yield f"{name}-images-answer", answers, "bodies", partial(check_image_answer, images)
        if images.stream_decoder is not None and (seeds := _files(golden, "stream.sse")):
            yield f"{name}-images-stream", seeds, "streams", partial(check_image_stream, images)
    for name, entry in VIDEO_FACES.items():
        yield f"{name}-request", encoded(VIDEO_BODIES), "bodies", partial(check_video_request, entry)
    for name, videos in VIDEO_PROTOCOLS.items():
        yield f"{name}-videos-answer", encoded(VIDEO_ANSWERS), "bodies", partial(check_video_answer, videos)


def _files(cases: list[Case], name: str) -> list[bytes]:
    return [(case.path / name).read_bytes() for case in cases if (case.path / name).exists()]
