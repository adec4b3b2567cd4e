"""Strict fake provider of the DashScope-like task API (`vidC`). Models of the vendor have its rules (`video_c_rules`)."""

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from aiohttp import web

from tests.support.providers.server import Json, ReceivedRequest, RefusedError
from tests.support.providers.video_c_rules import IMAGE_PATH, VIDEO_PATH, check_header, check_submission, series_of
from tests.support.providers.video_server import Task, VideoProvider, only, require

LOCAL_TIME = timezone(timedelta(hours=8))
WORDS = {"queued": "PENDING", "running": "RUNNING", "succeeded": "SUCCEEDED", "failed": "FAILED"}


@dataclass(kw_only=True)
class TaskApiProvider(VideoProvider):
    def is_submission(self, received: ReceivedRequest) -> bool:
        return received.method == "POST" and received.path in (VIDEO_PATH, IMAGE_PATH)

    def is_query(self, received: ReceivedRequest) -> bool:
        return received.method == "GET"

    def new_id(self, number: int, model: str) -> str:
        return f"8f1c0000-0000-4000-8000-{number:012}"

    def read(self, received: ReceivedRequest) -> tuple[str, str]:
        if series_of(received.json.get("model")) is not None:
            check_submission(received.path, received.headers, received.json)
            return received.json["model"], ""
        check_header(received.headers)
        body = received.json
        only(body, "model", "input", "parameters")
        source, parameters = body["input"], body["parameters"]
        only(source, "prompt", "negative_prompt", "img_url", "audio_url", "first_frame_url", "last_frame_url")
        only(parameters, "resolution", "size", "duration", "prompt_extend", "watermark", "audio", "seed", "shot_type")
        for name in ("prompt_extend", "watermark", "audio"):
            require(isinstance(parameters.get(name, True), bool), f"{name} must be a boolean", code="InvalidParameter")
        require(parameters.get("duration", 5) in (5, 10), "duration must be 5 or 10", code="InvalidParameter")
        if "img_url" in source:
            require(source["img_url"].startswith(("https://", "data:image/")), "img_url", code="InvalidURL")
            require("size" not in parameters, "size is for text-to-video", code="InvalidParameter")
            require(parameters.get("resolution") in ("480P", "720P", "1080P"), "resolution", code="InvalidParameter")
        else:
            require("resolution" not in parameters, "resolution is for image-to-video", code="InvalidParameter")
            require("*" in parameters.get("size", "*"), "size", code="InvalidParameter")
        return body["model"], ""

    def created(self, task: Task) -> Json:
        return {"output": {"task_id": task.id, "task_status": "PENDING"}, "request_id": "r-1"}

    def other(self, received: ReceivedRequest, key: str) -> web.StreamResponse:
        parts = received.path.split("/")
        require(parts[1:4] == ["api", "v1", "tasks"], "unknown path")
        if parts[-1] == "cancel":
            self.cancelled.append(parts[4])
            return web.json_response({"request_id": "r-2"})
        found = self.task_of(parts[4], key)
        if found is None:
            return web.json_response({"request_id": "r-3", "output": {"task_id": parts[4], "task_status": "UNKNOWN"}})
        return web.json_response(self._status(*found))

    def _status(self, task: Task, step: str) -> Json:
        word = WORDS.get(step, step)
        output: Json = {"task_id": task.id, "task_status": word, "submit_time": "2026-01-02 11:04:05.123"}
        answer: Json = {"request_id": "r-4", "output": output}
        if word == "SUCCEEDED":
            output |= {
                "video_url": f"{self.url}/files/{task.id}.mp4",
                "end_time": str(datetime.now(LOCAL_TIME).replace(tzinfo=None)),
            }
            answer["usage"] = {"duration": 5, "video_count": 1, "SR": 720}
        elif word == "FAILED":
            output |= {"code": self.failure[0], "message": self.failure[1]}
        return answer

    def refuse(self, refused: RefusedError) -> web.Response:
        body = {"code": refused.code or "InvalidParameter", "message": refused.message, "request_id": "r-5"}
        return web.json_response(body, status=refused.status)
