"""Encoding of streamed image responses as the server-sent events of SDKs."""

from collections.abc import Iterator
from typing import assert_never

import msgspec
import pybase64
from msgspec import Raw

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import JsonObject
from umg_grpc.wire.core.sse import named_frame
from umg_grpc.wire.images.errors import error_frame
from umg_grpc.wire.images.response import encode_usage, output_format

HEARTBEAT_COMMENT = b": keep-alive\n\n"
_PLACE = b'"b64_json":"'


class StreamEncoder:
    """Encoder of a canonical image stream as server-sent events for a caller. One instance per stream. The last
    finished image is sent at the end of the stream, because its event contains the usage of the call.
    """

    def __init__(self, prefix: str, request: pb.GenerateImageRequest) -> None:
        """Create an encoder. `prefix`: first part of event names, like `image_edit` of `image_edit.completed`."""
        self._prefix = prefix
        self._request = request
        self._started = pb.ImageStarted()
        self._completed: pb.ImageCompleted | None = None  # not sent yet
        self._has_begun = False

    def feed(self, message: pb.StreamGenerateImageResponse) -> bytes:
        self._has_begun = True
        return b"".join(frame for event in message.events for frame in self._frames(event))

    def close(self) -> bytes:
        return b"".join(self._flush(None))

    def error(self, error: UmgError) -> bytes:
        has_begun = self._has_begun
        return b"".join(self._flush(None)) + error_frame(error, has_begun=has_begun)

    def _frames(self, event: pb.ImageEvent) -> Iterator[bytes]:
        match event.WhichOneof("kind"):
            case "started":
                self._started = event.started
            case "partial":
                partial = event.partial
                members: JsonObject = {"partial_image_index": partial.partial_index, "image_index": partial.image_index}
                yield self._frame("partial_image", partial.image, members, None)
            case "completed":
                yield from self._flush(None)
                self._completed = event.completed
            case "failed":
                yield from self._flush(None)
                failure = event.failed
                yield self._named(
                    "partial_failed",
                    {"image_index": failure.image_index, "code": failure.code, "message": failure.message},
                )
            case "finished":
                yield from self._flush(event.finished.result)
            case None:
                pass  # a kind newer than this build
            case unhandled:
                assert_never(unhandled)

    def _flush(self, result: pb.ImageResult | None) -> Iterator[bytes]:
        """Yield the event of the last finished image if it was not sent yet."""
        completed, self._completed = self._completed, None
        if completed is None:
            return
        members: JsonObject = {"image_index": completed.image_index}
        if completed.image.HasField("revised_prompt"):
            members["revised_prompt"] = completed.image.revised_prompt
        if result is not None and (usage := encode_usage(result.usage)) is not None:
            members["usage"] = usage
        yield self._frame("completed", completed.image, members, result)

    def _frame(self, name: str, image: pb.Image, members: JsonObject, result: pb.ImageResult | None) -> bytes:
        started, request, result = self._started, self._request, result or pb.ImageResult()
        pixels = f"{image.width}x{image.height}" if image.width and image.height else ""
        described: JsonObject = {
            "created_at": started.create_time.seconds,
            "size": pixels or result.size or request.size or "auto",
            "quality": result.quality or started.quality or request.quality or "auto",
            "background": result.background or started.background or request.background or "auto",
            "output_format": output_format(image.mime_type),
            **members,
        }
        if image.extra_json:
            described |= msgspec.json.decode(image.extra_json, type=dict[str, Raw])
        if not image.HasField("data"):
            return self._named(name, {"url": image.url, **described})
        # the file is inserted as bytes: JSON encoders would copy it several times
        encoded = self._named(name, {"b64_json": "", **described})
        return encoded.replace(_PLACE, _PLACE + pybase64.b64encode(image.data), 1)

    def _named(self, name: str, members: JsonObject) -> bytes:
        kind = f"{self._prefix}.{name}"
        return named_frame(kind.encode(), msgspec.json.encode({"type": kind, **members}))
