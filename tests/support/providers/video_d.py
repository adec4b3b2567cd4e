"""Strict fake provider of the Ark-like video tasks (`vidD`): one task or a page of them."""

import time
from dataclasses import dataclass

from aiohttp import web

from tests.support.providers import ark_sdk
from tests.support.providers.server import Json, ReceivedRequest, RefusedError
from tests.support.providers.video_server import Task, VideoProvider, require

API = "/api/v3"
PATH = f"{API}{ark_sdk.TASKS}"


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
        require(body.get("content"), "content is required", "content", "MissingParameter")
        problem = ark_sdk.task_problem(received.path.removeprefix(API), body)
        require(not problem, problem, "content", "InvalidParameter")
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
