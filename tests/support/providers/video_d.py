"""Strict fake provider of the Ark-like video tasks (`vidD`): one task or a page of them."""

import time
from dataclasses import dataclass

from aiohttp import web

from tests.support.providers.server import Json, ReceivedRequest, RefusedError
from tests.support.providers.video_server import Task, VideoProvider, only, require

PATH = "/api/v3/contents/generations/tasks"
ROLES = {
    "image_url": ("first_frame", "last_frame", "reference_image", None),
    "video_url": ("reference_video",),
    "audio_url": ("reference_audio",),
}
FIELDS = (
    *("model", "content", "resolution", "ratio", "duration", "frames", "generate_audio", "watermark", "seed"),
    *("camera_fixed", "return_last_frame", "callback_url", "service_tier", "execution_expires_after"),
)


@dataclass(kw_only=True)
class ContentTaskProvider(VideoProvider):
    pages: int = 0
    """Queries of several tasks."""

    def is_submission(self, received: ReceivedRequest) -> bool:
        return received.method == "POST" and received.path == PATH

    def is_query(self, received: ReceivedRequest) -> bool:
        return received.method == "GET"

    def new_id(self, number: int, model: str) -> str:
        return f"cgt-20260102-{number:05}"

    def read(self, received: ReceivedRequest) -> tuple[str, str]:
        body = received.json
        only(body, *FIELDS)
        require(body["content"], "content is required", "content", "MissingParameter")
        for item in body["content"]:
            kind = item["type"]
            only(item, "type", "role", kind)
            if kind == "text":
                require(item["text"].strip(), "text is empty", "content", "InvalidParameter")
                continue
            require(item.get("role") in ROLES[kind], f"role of {kind}", "content", "InvalidParameter")
            url = item[kind]["url"]
            schemes = ("https://", "http://", "asset://") + (() if kind == "video_url" else ("data:",))
            require(url.startswith(schemes), f"url of {kind}", "content", "InvalidParameter")
        require(isinstance(body.get("watermark", False), bool), "watermark", "watermark", "InvalidParameter")
        second = "-2-0" in body["model"]
        for name in ("camera_fixed", "frames"):
            require(not (second and name in body), f"{name} is not supported", name, "InvalidParameter")
        return body["model"], ""

    def created(self, task: Task) -> Json:
        return {"id": task.id}

    def other(self, received: ReceivedRequest, key: str) -> web.StreamResponse:
        task_id = received.path.removeprefix(PATH).removeprefix("/")
        if received.method == "DELETE":
            require(task_id in self.tasks, "not found", code="ResourceNotFound")
            self.cancelled.append(task_id)
            return web.json_response({})
        if not task_id:
            return self._page(received, key)
        if (found := self.task_of(task_id, key)) is None:
            raise RefusedError("the task is not found", code="ResourceNotFound", status=404)
        return web.json_response(self._task(*found))

    def _page(self, received: ReceivedRequest, key: str) -> web.StreamResponse:
        ids = received.query.getall("filter.task_ids")  # type: ignore[attr-defined]
        require(received.query["page_num"] == "1" and int(received.query["page_size"]) >= len(ids), "page")
        self.pages += 1
        items = [self._task(*found) for task_id in ids if (found := self.task_of(task_id, key)) is not None]
        return web.json_response({"items": items, "total": len(items)})

    def _task(self, task: Task, step: str) -> Json:
        answer: Json = {
            "id": task.id,
            "model": task.model,
            "status": step,
            "error": None,
            "updated_at": int(time.time()),
        }
        if step == "succeeded":
            content = {"video_url": f"{self.url}/files/{task.id}.mp4"}
            if task.body.get("return_last_frame"):
                content["last_frame_url"] = f"{self.url}/files/{task.id}.png"
            answer |= {"content": content, "duration": 5, "usage": {"completion_tokens": 900, "total_tokens": 900}}
        elif step == "failed":
            answer["error"] = {"code": self.failure[0] or "InternalServiceError", "message": self.failure[1]}
        return answer

    def refuse(self, refused: RefusedError) -> web.Response:
        code = {401: "AuthenticationError"}.get(refused.status, refused.code or "InvalidParameter")
        error = {"code": code, "message": refused.message, "param": refused.at or "", "type": "BadRequest"}
        return web.json_response({"error": error}, status=refused.status)
