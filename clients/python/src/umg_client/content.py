"""Downloads of images and videos: their bytes and media types."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from umg_client import v1

Progress = Callable[[int, int | None], None]
"""Function that receives the number of bytes so far and of all bytes, None where the gateway does not know it."""


@dataclass(frozen=True)
class Content:
    """Bytes of a downloaded image or video, with their media type."""

    data: bytes
    mime_type: str


async def collect(
    messages: AsyncIterator[v1.DownloadVideoResponse] | AsyncIterator[v1.DownloadFileResponse],
    progress: Progress | None,
) -> Content:
    """Return the content of a download from its messages. `progress` is called after each chunk."""
    head, data = v1.ContentHead(), bytearray()
    async for message in messages:
        if message.head is not None:
            head = message.head
        if message.chunk is not None:
            data += message.chunk
            if progress is not None:
                progress(len(data), head.total_bytes)
    return Content(bytes(data), head.mime_type)


def file_token(url: str) -> str:
    """Return the token in an address of a file of the gateway. Raise ValueError for another address."""
    head, _, token = url.rpartition("/files/")
    if not head or not token:
        raise ValueError("the image is at an address of its provider, not of the gateway; fetch it with an HTTP client")
    return token.partition("?")[0]
