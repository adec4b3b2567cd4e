"""Members of submissions to Veo against the request builder of the vendor's SDK."""

from typing import Any

import msgspec
from google.genai import models, types

from tests.support.videos import PNG, image, submission
from umg_grpc.wire.video.providers.vid_b_protocol import VID_B

STATED: dict[str, Any] = {
    "duration_seconds": 8,
    "aspect_ratio": "9:16",
    "resolution": "1080p",
    "person_generation": "allow_adult",
    "negative_prompt": "rain",
    "prompt_extend": True,
    "seed": 42,
    "frames_per_second": 24,
    "generate_audio": False,
    "sample_count": 2,
}
FURTHER = {"compressionQuality": "OPTIMIZED", "resizeMode": "CROP", "labels": {"team": "a"}}


def built_by_the_sdk() -> dict[str, Any]:
    """Return the body that the SDK builds for Vertex AI with the same values."""
    picture = types.Image(image_bytes=PNG, mime_type="image/png")
    config = types.GenerateVideosConfig(
        duration_seconds=8,
        aspect_ratio="9:16",
        resolution="1080p",
        person_generation="allow_adult",
        negative_prompt="rain",
        enhance_prompt=True,
        seed=42,
        fps=24,
        generate_audio=False,
        number_of_videos=2,
        last_frame=picture,
        compression_quality=types.VideoCompressionQuality.OPTIMIZED,
        resize_mode=types.ImageResizeMode.CROP,
        labels={"team": "a"},
    )
    source = types.GenerateVideosSource(prompt="a paper boat", image=picture)
    parameters = types._GenerateVideosParameters(model="veo-3.1-generate-001", source=source, config=config)
    built: dict[str, Any] = models._GenerateVideosParameters_to_vertex(_Client(), parameters)
    built.pop("_url")
    built.pop("config", None)
    return built


class _Client:
    vertexai = True
    project = location = "p"


def test_a_full_submission_is_the_body_of_the_vendors_sdk() -> None:
    given = submission(
        "veo-3.1-generate-001",
        image("first_frame"),
        image("last_frame"),
        extra_json=msgspec.json.encode(FURTHER).decode(),
        **STATED,
    )
    request = VID_B.encode_create(given)
    assert msgspec.json.decode(request.body) == built_by_the_sdk()
    assert not request.report.dropped


def test_a_bare_submission_is_the_body_of_the_vendors_sdk() -> None:
    parameters = types._GenerateVideosParameters(
        model="veo-3.1-generate-001", source=types.GenerateVideosSource(prompt="a paper boat")
    )
    built = models._GenerateVideosParameters_to_vertex(_Client(), parameters)
    body = msgspec.json.decode(VID_B.encode_create(submission("veo-3.1-generate-001", public="film")).body)
    assert body == {"instances": built["instances"], "parameters": {}}
