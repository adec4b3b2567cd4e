"""Input media of videos given as URLs: downloaded by the gateway for providers that accept only bytes."""

import asyncio
from dataclasses import replace

from umg_grpc.upstream.caller_url_fetch import Fetcher
from umg_grpc.v1 import pb
from umg_grpc.wire.core.base64_media import sniff
from umg_grpc.wire.core.json_decoding import invalid
from umg_grpc.wire.video.provider_task_types import Submission

MAX_BYTES = {
    pb.VIDEO_MEDIA_KIND_IMAGE: 20 << 20,
    pb.VIDEO_MEDIA_KIND_VIDEO: 50 << 20,
    pb.VIDEO_MEDIA_KIND_AUDIO: 15 << 20,
}
"""Kind of medium -> maximum size of its file in bytes."""
FETCHED_SCHEMES = ("http://", "https://")


async def with_inline_media(submission: Submission, fetcher: Fetcher, seconds: float) -> Submission:
    """Return the submission with the downloaded bytes instead of URLs of media. `seconds`: time for all downloads.
    Raise UmgError(INVALID_FIELD) for a URL that the egress rules forbid, and for a file that cannot be downloaded or is
    not of the expected kind.
    """
    media = submission.request.parameters.media
    if not any(item.url.lower().startswith(FETCHED_SCHEMES) for item in media):
        return submission
    request = pb.CreateVideoTaskRequest()
    request.CopyFrom(submission.request)
    end = asyncio.get_running_loop().time() + seconds
    for position, item in enumerate(request.parameters.media):
        if item.url.lower().startswith(FETCHED_SCHEMES):
            await _fetch(item, f"parameters.media[{position}].url", fetcher, end - asyncio.get_running_loop().time())
    return replace(submission, request=request)


async def _fetch(item: pb.VideoMedia, field: str, fetcher: Fetcher, seconds: float) -> None:
    """Replace the URL of a medium by the downloaded bytes, in place."""

    def check(beginning: bytes) -> None:
        if item.kind == pb.VIDEO_MEDIA_KIND_IMAGE and not sniff(beginning).startswith("image/"):
            raise invalid(field, "the file at the URL is not an image; send the URL of an image")

    found = await fetcher.fetch(
        item.url, field=field, max_bytes=MAX_BYTES.get(item.kind), seconds=max(seconds, 0), check=check
    )
    if not found.body:
        raise invalid(field, "the file at the URL is empty; send the URL of another one")
    item.data = found.body
    if mime_type := sniff(found.body) or found.content_type:
        item.mime_type = mime_type
