"""Strict fake provider of xAI's video tasks (`vidA` at xAI): JSON submissions, and results by address.

Members and answers: @ai-sdk/xai 3.0.138, xai-video-model.ts (read 2026-11-29), with whose members
`tests/pairs/vendors/test_ai_sdk.py` compares them.
"""

from dataclasses import dataclass
from typing import Any

from aiohttp import web

from tests.support.providers.common import decoded
from tests.support.providers.server import Json, ReceivedRequest, RefusedError
from tests.support.providers.video_server import Task, VideoProvider, only, require

GENERATIONS, EDITS = "/v1/videos/generations", "/v1/videos/edits"
MEMBERS = {
    GENERATIONS: ("model", "prompt", "duration", "aspect_ratio", "resolution", "image", "reference_images"),
    EDITS: ("model", "prompt", "video"),
}
"""Path of submissions -> members of its body."""
RESOLUTIONS = ("480p", "720p", "1080p")
PENDING = {"queued": None, "running": {"status": "pending", "progress": 40}}
"""Step of a plan -> body of the response with 202; None for none."""
CODES = {401: "unauthenticated:bad-credentials", 404: "not-found"}


@dataclass(kw_only=True)
class RequestProvider(VideoProvider):
    filters: bool = False
    """Whether the content filter removes the videos."""

    def is_submission(self, received: ReceivedRequest) -> bool:
        return received.method == "POST"

    def new_id(self, number: int, model: str) -> str:
        return f"d97415a1-5796-b7ec-379f-{number:012}"

    def read(self, received: ReceivedRequest) -> tuple[str, str]:
        body = received.json
        require(received.path in MEMBERS, "unknown path")
        only(body, *MEMBERS[received.path])
        require(isinstance(body.get("prompt"), str), "prompt")
        require(type(body.get("duration", 5)) is int and 1 <= body.get("duration", 5) <= 15, "duration")
        require(body.get("resolution", "720p") in RESOLUTIONS, "resolution")
        for image in (body.get("image"), *body.get("reference_images", [])):
            _check_image(image)
        require(received.path != EDITS or body["video"]["url"].startswith("https://"), "video")
        return body["model"], ""

    def created(self, task: Task) -> Json:
        return {"request_id": task.id}

    def other(self, received: ReceivedRequest, key: str) -> web.StreamResponse:
        require(received.method == "GET", "unknown path")
        if (found := self.task_of(received.path.removeprefix("/v1/videos/"), key)) is None:
            raise RefusedError("The requested resource was not found", status=404)
        task, step = found
        if step in PENDING:
            body = PENDING[step]
            return web.Response(status=202) if body is None else web.json_response(body, status=202)
        return web.json_response(self._ended(task, step))

    def _ended(self, task: Task, step: str) -> Json:
        if step == "failed":
            error = {"code": self.failure[0] or "internal_error", "message": self.failure[1]}
            return {"status": "failed", "error": error}
        if step != "succeeded":
            return {"status": step}
        if self.filters:
            return {"status": "done", "video": {"url": None, "duration": 5, "respect_moderation": False}}
        video = {"url": f"{self.url}/files/{task.id}.mp4", "duration": 5, "respect_moderation": True}
        return {"status": "done", "model": task.model, "video": video}

    def refuse(self, refused: RefusedError) -> web.Response:
        body = {"code": CODES.get(refused.status, "invalid-argument"), "error": refused.message}
        return web.json_response(body, status=refused.status)


def _check_image(image: Any) -> None:
    if image is not None and not image["url"].startswith("https://"):
        only(image, "url")
        require(image["url"].startswith("data:image/"), "image")
        decoded(image["url"].partition("base64,")[2], "image")
