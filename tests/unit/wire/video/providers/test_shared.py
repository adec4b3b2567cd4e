"""Parts that the protocols of video providers share: messages, sizes, states, classification."""

from dataclasses import dataclass

import pytest

from tests.support.error_checks import raises_error
from tests.support.videos import IMAGE, image, submission
from umg_grpc.base.errors import Failure
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.video import VIDEO_PROTOCOLS
from umg_grpc.wire.video.provider_protocol_interface import VideoProtocol
from umg_grpc.wire.video.providers.errors import public_message
from umg_grpc.wire.video.providers.image_roles import inputs_of
from umg_grpc.wire.video.providers.request_encoding import extra_fields, pixels, ratio_of, report_unsupported
from umg_grpc.wire.video.providers.response_decoding import failed, progressing, time_of, unknown_state

EACH = pytest.mark.parametrize("protocol", VIDEO_PROTOCOLS.values(), ids=VIDEO_PROTOCOLS.keys())


@dataclass(frozen=True)
class Message:
    written: str
    public: str


@pytest.mark.parametrize(
    "case",
    [
        Message("Sora could not render at https://api.openai.com/x", "[provider] could not render at [url]"),
        Message("model kling-v2-6 is busy", "model [model] is busy"),
        Message("wan2.5-t2v-preview is offline, says DashScope", "[model] is offline, says [provider]"),
        Message("doubao-seedance-2-0-260128 not open for account 2100123456", "[model] not open for account [id]"),
        Message("a wan smile of a minister", "a wan smile of a minister"),
        Message("Google Vertex AI: projects/secret-1/x", "[provider] [provider]: projects/[id]/x"),
    ],
    ids=lambda case: case.written,
)
def test_a_message_for_callers_has_no_name_of_a_provider(case: Message) -> None:
    assert public_message(case.written) == case.public


def test_a_failure_by_the_content_has_a_code_of_its_own() -> None:
    blocked, broken = failed("Input rejected", "InputTextSensitiveContentDetected"), failed("no GPU", "Internal")
    assert blocked.error is not None
    assert broken.error is not None
    assert (blocked.error.code, blocked.error.status_code) == ("content_policy_violation", 400)
    assert (broken.error.code, broken.error.status_code) == ("task_failed", 500)
    assert broken.error.message == "no GPU (Internal)"


def test_an_unknown_word_means_running_and_is_kept_for_the_log() -> None:
    status = unknown_state("re-\nviewing")
    assert (status.state, status.unknown_word) == (pb.VIDEO_TASK_STATE_RUNNING, "re-?viewing")
    assert progressing(pb.VIDEO_TASK_STATE_QUEUED, 100).progress_percent == 99


def test_sizes_are_read_in_both_spellings() -> None:
    assert pixels("1280x720") == pixels("1280*720") == (1280, 720)
    assert [pixels(size) for size in ("wide", "0x1", "1x", "123456x1", "-1x1")] == [None] * 5
    assert [ratio_of(size) for size in ("1920x1080", "720x1280", "1088*832", "hd")] == ["16:9", "9:16", "4:3", None]


def test_times_are_seconds_or_milliseconds() -> None:
    seconds, milliseconds = time_of(1767323045), time_of(1767323045123)
    assert seconds is not None
    assert milliseconds is not None
    assert int(milliseconds.timestamp()) == int(seconds.timestamp()) == 1767323045
    assert [time_of(value) for value in (0, -1, None, "soon", 10**20)] == [None] * 5


def test_images_without_roles_are_frames_or_references() -> None:
    one, two = submission("m", image()), submission("m", image(), image())
    assert inputs_of(one).first is not None
    assert [len(inputs_of(two).references), inputs_of(two).first] == [2, None]
    pair = inputs_of(two, pairs=True)
    assert pair.first is not None
    assert pair.last is not None
    assert pair.last[0] == 1


def test_lost_parameters_are_reported_and_harmless_ones_are_not() -> None:
    report = Report()
    parameters = submission("m", seed=7, watermark=False, sample_count=1, resolution="720p").request.parameters
    report_unsupported(parameters, {"prompt"}, report)
    assert report.dropped == {"parameters.resolution": None, "parameters.seed": None}


def test_fields_of_the_gateway_are_not_passed_through() -> None:
    report = Report()
    extra = extra_fields(submission("m", extra_json='{"callback_url":"http://x","model":"y","shot":1}'), report)
    assert (set(extra), set(report.dropped)) == (
        {"shot"},
        {"parameters.extra_json.callback_url", "parameters.extra_json.model"},
    )
    with raises_error(metadata={"field": "parameters.extra_json"}):
        extra_fields(submission("m", extra_json="[1]"), report)


@EACH
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"<html>hello</html>"),
        (200, b"{}"),
        (200, b'{"id":'),
        (404, b"<html>404</html>"),
        (502, b"<html>bad gateway</html>"),
        (504, b""),
        (500, b'{"error":{"message":"internal","code":"internal_error"}}'),
        (408, b""),
    ],
)
def test_a_submission_without_a_clear_answer_is_ambiguous(protocol: VideoProtocol, status: int, body: bytes) -> None:
    with raises_error(failure=Failure.AMBIGUOUS):
        protocol.decode_created(status, {"content-type": "text/plain"}, body, submission())


@EACH
@pytest.mark.parametrize(("status", "failure"), [(401, Failure.DOWN), (400, Failure.CALLER), (429, Failure.OVERLOADED)])
def test_a_submission_that_was_clearly_refused_is_not(protocol: VideoProtocol, status: int, failure: Failure) -> None:
    with raises_error(failure=failure):
        protocol.decode_created(status, {}, b'{"error":{"message":"no"}}', submission())


@EACH
def test_a_submission_without_a_prompt_and_without_media_is_refused(protocol: VideoProtocol) -> None:
    with raises_error(field="parameters.prompt"):
        protocol.encode_create(submission(prompt=" "))


@EACH
def test_a_medium_at_an_address_of_another_scheme_is_refused(protocol: VideoProtocol) -> None:
    foreign = pb.VideoMedia(kind=IMAGE, url="gs://bucket/secret.png")
    with raises_error(field="parameters.media[0]"):
        protocol.encode_create(submission("m", foreign))
