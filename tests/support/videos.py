"""Submissions of video tasks, and channels to their providers, for tests."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from tests.support.providers.raw import PATIENT
from tests.support.providers.server import KEY
from umg_grpc.base.egress_rules import EgressRules
from umg_grpc.base.host_list_entries import parse_place
from umg_grpc.knowledge.families.video_model_rules import video_family
from umg_grpc.upstream.caller_url_fetch import Fetcher
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http.provider_endpoints import ProviderEndpoint, RotatingEndpoints
from umg_grpc.upstream.http.signing import Signer
from umg_grpc.upstream.http.video_generation import HttpVideo
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.v1 import pb
from umg_grpc.wire.video.provider_protocol_interface import VideoProtocol
from umg_grpc.wire.video.provider_task_types import ProviderTask, Submission

TASK_ID = "task_0123456789abcdefghijklmnopqrstuv"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
NEUTRAL = "vidA-own"
IMAGE, VIDEO, AUDIO = pb.VIDEO_MEDIA_KIND_IMAGE, pb.VIDEO_MEDIA_KIND_VIDEO, pb.VIDEO_MEDIA_KIND_AUDIO


def image(role: str = "", *, url: str = "", data: bytes = PNG) -> pb.VideoMedia:
    """Return an image as the media of a submission. `role`: in lower case, e.g. `first_frame`."""
    value = pb.VideoMediaRole.Value(f"VIDEO_MEDIA_ROLE_{role.upper()}") if role else 0
    return pb.VideoMedia(kind=IMAGE, role=value, url=url) if url else pb.VideoMedia(kind=IMAGE, role=value, data=data)


def submission(
    model: str = "m",
    *media: pb.VideoMedia,
    prompt: str = "a paper boat",
    source: ProviderTask | None = None,
    public: str = "",
    callback_url: str = "",
    kind: "pb.VideoTaskKind.ValueType" = pb.VIDEO_TASK_KIND_UNSPECIFIED,
    **parameters: Any,
) -> Submission:
    """Return a submission with these parameters of the video. `public`: id that the caller uses, by default a neutral
    one, for which the gateway states its own defaults: `model` if it is neutral.
    """
    request = pb.CreateVideoTaskRequest(
        model=public or (model if video_family(model) else NEUTRAL),
        kind=kind,
        parameters=pb.VideoParameters(prompt=prompt, media=media, **parameters),
    )
    return Submission(task_id=TASK_ID, model=model, request=request, source=source, callback_url=callback_url)


@asynccontextmanager
async def opened_videos(
    url: str,
    protocol: VideoProtocol,
    *,
    keys: Sequence[str] = (KEY,),
    allow: Sequence[str] = (),
    deadlines: Deadlines = PATIENT,
    signer: Signer | None = None,
) -> AsyncGenerator[HttpVideo, None]:
    """Open a channel to a provider. `allow`: places that the guard for URLs allows; `signer`: instead of the keys."""
    rules = EgressRules(tuple(parse_place(place) for place in allow))
    async with Client.opened() as client, Fetcher.opened(rules) as fetcher:
        endpoints = [ProviderEndpoint(url, {}, key) for key in keys]
        if signer is not None:
            endpoints = [ProviderEndpoint(url, {}, key_in_headers="a-signing-key", signer=signer)]
        source = RotatingEndpoints(endpoints)
        yield HttpVideo(HttpChannel(client, source, deadlines), protocol, fetcher)
