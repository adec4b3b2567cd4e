"""Submissions within the rules that vendors have for their models."""

from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from tests.support.error_checks import raises_error
from tests.support.videos import image, submission
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.video.provider_protocol_interface import VideoProtocol
from umg_grpc.wire.video.provider_task_types import ProviderTask
from umg_grpc.wire.video.providers.vid_a_protocol import VID_A
from umg_grpc.wire.video.providers.vid_b_protocol import VID_B
from umg_grpc.wire.video.providers.vid_d_protocol import VID_D
from umg_grpc.wire.video.submission_encoding import encode_submission

SECOND, FAST, FIRST = "doubao-seedance-2-0-260128", "dreamina-seedance-2-0-fast-260128", "seedance-1-0-pro-250528"


@dataclass(frozen=True)
class Refused:
    id: str
    model: str
    parameters: dict[str, Any]
    field: str
    message: str
    images: int = 0
    protocol: VideoProtocol = VID_D


REFUSED = [
    Refused(
        id="a length below the least",
        model=SECOND,
        parameters={"duration_seconds": 3},
        field="parameters.duration_seconds",
        message="between 4 and 15 on model my-video",
    ),
    Refused(
        id="a resolution of another model",
        model=FAST,
        parameters={"resolution": "1080p"},
        field="parameters.resolution",
        message="'1080p' is not one of its values on model my-video: 480p, 720p",
    ),
    Refused(
        id="too many images",
        model=SECOND,
        parameters={},
        images=10,
        field="parameters.media",
        message="at most 9 image inputs",
    ),
    Refused(
        id="a length that does not fit the resolution",
        model="veo-3.1-generate-001",
        protocol=VID_B,
        parameters={"resolution": "1080p", "duration_seconds": 4},
        field="parameters.duration_seconds",
        message="it must be 8 with resolution 1080p on model my-video; change it or leave out the resolution",
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_a_value_that_the_vendor_refuses_is_refused_before_it_is_sent(case: Refused) -> None:
    with pytest.raises(UmgError, match=case.message) as caught:
        encode_submission(
            case.protocol, submission(case.model, *[image()] * case.images, public="my-video", **case.parameters)
        )
    assert (caught.value.reason, caught.value.metadata) == (pb.ERROR_REASON_INVALID_FIELD, {"field": case.field})
    assert caught.value.failure is None  # another channel of the model may take it


def test_texts_are_compared_in_any_case() -> None:
    body = msgspec.json.decode(encode_submission(VID_D, submission(SECOND, resolution="4K")).body)
    assert body["resolution"] == "4K"


def test_a_parameter_that_the_model_lacks_is_left_out_and_reported_unless_it_is_no_loss() -> None:
    request = encode_submission(VID_D, submission(SECOND, camera_fixed=False, frames=29))
    assert {"camera_fixed", "frames"}.isdisjoint(msgspec.json.decode(request.body))
    assert list(request.report.dropped) == ["parameters.frames"]
    silent = encode_submission(VID_D, submission(FIRST, generate_audio=False))
    assert list(silent.report.dropped) == ["parameters.generate_audio"]


def test_a_draft_is_refused_for_a_provider_without_drafts() -> None:
    source = ProviderTask(id="cgt-1", model="m")
    with raises_error(metadata={"field": "parameters.draft_task_id"}):
        encode_submission(VID_A, submission("m", source=source, draft_task_id="task_1"))


@pytest.mark.parametrize("values", [{"resolution": "1080p"}, {"resolution": "4k", "duration_seconds": 8}])
def test_a_length_that_fits_the_resolution_or_is_left_out_is_sent(values: dict[str, Any]) -> None:
    body = msgspec.json.decode(encode_submission(VID_B, submission("veo-3.1-generate-001", **values)).body)
    assert body["parameters"]["resolution"] == values["resolution"]


def test_a_neutral_model_loses_a_default_that_does_not_fit_another() -> None:
    given = submission("veo-3.1-generate-001", public="vidB-3.1", duration_seconds=4, resolution="1080p")
    request = encode_submission(VID_B, given)
    assert msgspec.json.decode(request.body)["parameters"]["durationSeconds"] == 4
    assert "resolution" not in msgspec.json.decode(request.body)["parameters"]
    assert list(request.report.dropped) == ["parameters.resolution"]


def test_the_submission_itself_is_not_changed() -> None:
    given = submission(SECOND, frames=29)
    encode_submission(VID_D, given)
    assert given.request.parameters.frames == 29
