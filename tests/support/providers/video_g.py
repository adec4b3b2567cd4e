"""Strict fake provider of video generation v2 and v1 (`vidG`)."""

from dataclasses import dataclass

from aiohttp import web

from tests.support.providers.server import Json, ReceivedRequest, RefusedError
from tests.support.providers.video_server import Task, VideoProvider, only, require

V1_WORDS = {"queued": "Queueing", "running": "Processing", "succeeded": "Success", "failed": "Fail"}
OK: Json = {"status_code": 0, "status_msg": "success"}
V2_FIELDS = ("model", "content", "resolution", "duration", "ratio", "aigc_watermark")
V1_FIELDS = (
    *("model", "prompt", "prompt_optimizer", "duration", "resolution", "first_frame_image", "last_frame_image"),
    "subject_reference",
)
V1_LIMITS = {
    "MiniMax-Hailuo-2.3": (("768P", "1080P"), (6, 10)),
    "MiniMax-Hailuo-2.3-Fast": (("768P", "1080P"), (6, 10)),
    "MiniMax-Hailuo-02": (("512P", "768P", "1080P"), (6, 10)),
    "T2V-01": (("720P",), (6,)),
    "I2V-01-Director": (("720P",), (6,)),
    "S2V-01": (("720P",), (6,)),
}
V2_RESOLUTIONS = {"MiniMax-H3": ("768P", "2K"), "MiniMax-H3-Max": ("480P", "768P")}
"""Models of each version with their resolutions, in v1 also with their lengths, by the vendor's pages."""
TYPES = {400: "bad_request_error", 401: "authorized_error", 500: "server_error"}


@dataclass(kw_only=True)
class TwoVersionProvider(VideoProvider):
    def is_submission(self, received: ReceivedRequest) -> bool:
        return received.method == "POST" and received.path.endswith("/video_generation")

    def is_query(self, received: ReceivedRequest) -> bool:
        return "/query/" in received.path

    def new_id(self, number: int, model: str) -> str:
        return f"3851{number:012}"

    def read(self, received: ReceivedRequest) -> tuple[str, str]:
        body = received.json
        if received.path.startswith("/v1/"):
            only(body, *V1_FIELDS)
            require(isinstance(body.get("prompt_optimizer", True), bool), "prompt_optimizer (2013)")
            resolutions, lengths = V1_LIMITS.get(body["model"], (("768P",), (6, 10)))
            require(body.get("resolution", resolutions[0]) in resolutions, "resolution (2013)")
            require(body.get("duration", 6) in lengths, "duration (2013)")
            resolution = body.get("resolution", "768P")
            require(resolution != "1080P" or body.get("duration", 6) == 6, "1080P takes 6 s (2013)")
            require(resolution != "512P" or "first_frame_image" in body, "512P needs a first frame (2013)")
            require(resolution != "512P" or "last_frame_image" not in body, "512P has no last frame (2013)")
            for subject in body.get("subject_reference", []):
                require(body["model"] == "S2V-01" and subject["type"] == "character", "subject_reference (2013)")
                require(len(subject["image"]) == 1, "subject_reference (2013)")
            return body["model"], ""
        only(body, *V2_FIELDS)
        require(body["model"] in V2_RESOLUTIONS, "model (2013)")
        resolutions = V2_RESOLUTIONS[body["model"]]
        require(isinstance(body.get("aigc_watermark", False), bool), "aigc_watermark (2013)")
        require(body.get("resolution", "768P") in resolutions, "resolution (2013)")
        require(4 <= body.get("duration", 6) <= 15, "duration (2013)")
        texts = [item for item in body["content"] if item["type"] == "text"]
        require(len(texts) == 1 and texts[0]["text"].strip(), "one text (2013)")
        require(len(body["content"]) > 1 or body.get("ratio") != "adaptive", "ratio (2013)")
        return body["model"], ""

    def created(self, task: Task) -> Json:
        return {"task_id": task.id} if task.model in V2_RESOLUTIONS else {"task_id": task.id, "base_resp": OK}

    def other(self, received: ReceivedRequest, key: str) -> web.StreamResponse:
        if received.path == "/v1/files/retrieve":
            task_id = received.query["file_id"].removeprefix("9")
            file = {"file_id": int(received.query["file_id"]), "download_url": f"{self.url}/files/{task_id}.mp4"}
            return web.json_response({"file": file, "base_resp": OK})
        if received.method == "DELETE":
            task_id = received.path.rpartition("/")[2]
            require(received.path == f"/v2/video_generation/{task_id}" and task_id in self.tasks, "task (2013)")
            self.cancelled.append(task_id)
            return web.json_response({"task_id": task_id, "status": "cancelled"})
        if received.path == "/v1/query/video_generation":
            return self._query_v1(received.query["task_id"], key)
        found = self.task_of(received.path.removeprefix("/v2/query/video_generation/"), key)
        if found is None:
            raise RefusedError("record not found (1000)", status=500)
        return web.json_response({"task": self._task(*found)})

    def _query_v1(self, task_id: str, key: str) -> web.Response:
        found = self.task_of(task_id, key)
        if found is None:
            return web.json_response({"base_resp": {"status_code": 2013, "status_msg": "task not found"}})
        task, step = found
        answer: Json = {"task_id": task.id, "status": V1_WORDS.get(step, step), "file_id": "", "base_resp": OK}
        if step == "succeeded":
            answer["file_id"] = f"9{task.id}"
        elif step == "failed":
            answer["base_resp"] = {"status_code": int(self.failure[0] or 1000), "status_msg": self.failure[1]}
        return web.json_response(answer)

    def _task(self, task: Task, step: str) -> Json:
        answer: Json = {"id": task.id, "model": task.model, "status": step, "error": None}
        if step == "succeeded":
            answer |= {"content": {"url": f"{self.url}/files/{task.id}.mp4"}, "duration": 6}
            answer["usage"] = {"total_seconds": 6, "input_seconds": 0, "output_seconds": 6, "input_image_count": 0}
        elif step == "failed":
            answer["error"] = {"code": self.failure[0] or "1000", "message": self.failure[1]}
        return answer

    def refuse(self, refused: RefusedError) -> web.Response:
        kind = TYPES.get(refused.status, "bad_request_error")
        error = {"type": kind, "message": refused.message, "http_code": str(refused.status)}
        return web.json_response({"type": "error", "error": error, "request_id": "r"}, status=refused.status)
