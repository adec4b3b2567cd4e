"""Strict fake provider of family E (`vidE`): the old and the new API, keys and short-lived tokens, external ids."""

import re
from dataclasses import dataclass, field

import jwt
from aiohttp import web

from tests.support.providers.common import decoded
from tests.support.providers.server import Json, ReceivedRequest, RefusedError
from tests.support.providers.video_server import Task, VideoProvider, only, require

OLD = re.compile(r"/v1/videos/(text2video|image2video)(?:/([\w.-]+))?")
NEW = re.compile(r"/(text-to-video|image-to-video|omni-video)/([\w.-]+)")
OLD_WORDS = {"queued": "submitted", "running": "processing", "succeeded": "succeed"}
NEW_WORDS = {"queued": "submitted", "running": "processing"}
CODES = {401: 1002, 404: 1203}
OLD_FIELDS = (
    *("model_name", "prompt", "negative_prompt", "image", "image_tail", "duration", "aspect_ratio", "mode", "sound"),
    *("cfg_scale", "static_mask", "dynamic_masks", "camera_control", "callback_url", "external_task_id"),
)


@dataclass(kw_only=True)
class FamilyEProvider(VideoProvider):
    pairs: dict[str, str] = field(default_factory=dict)
    """Access keys with their secrets; only the old API accepts tokens made by them."""
    lists: list[list[str]] = field(default_factory=list)
    """Ids of each query of the new API."""

    def admit(self, received: ReceivedRequest) -> str:
        token = received.headers.get("authorization", "").removeprefix("Bearer ")
        if token in self.keys:
            return token
        try:
            access_key = jwt.decode(token, options={"verify_signature": False})["iss"]
            required = ["iss", "exp", "nbf"]
            jwt.decode(token, self.pairs[access_key], algorithms=["HS256"], options={"require": required})
        except (jwt.InvalidTokenError, KeyError):
            raise RefusedError("Auth failed", status=401) from None
        if not OLD.fullmatch(received.path):
            raise RefusedError("AK/SK is not supported", status=401)
        return str(access_key)

    def is_submission(self, received: ReceivedRequest) -> bool:
        old = OLD.fullmatch(received.path)
        return received.method == "POST" and (
            NEW.fullmatch(received.path) is not None or (old is not None and not old[2])
        )

    def new_id(self, number: int, model: str) -> str:
        return f"8671{number:08}"

    def read(self, received: ReceivedRequest) -> tuple[str, str]:
        body = received.json
        if (old := OLD.fullmatch(received.path)) is not None:
            external_id = self._read_old(body, old[1])
            model = body["model_name"]
        else:
            found = NEW.fullmatch(received.path)
            assert found is not None
            model = found[2]
            external_id = self._read_new(body, found[1])
        require(re.fullmatch(r"[A-Za-z0-9._-]{1,191}", external_id), "external_task_id")
        require(all(task.external_id != external_id for task in self.tasks.values()), "external_task_id is taken")
        return model, external_id

    def _read_old(self, body: Json, kind: str) -> str:
        only(body, *OLD_FIELDS)
        require(isinstance(body["duration"], str), "duration must be a string")
        if "sound" in body:
            require(body["sound"] in ("on", "off"), "sound")
        if kind == "image2video":
            require("aspect_ratio" not in body, "aspect_ratio")
            if not body["image"].startswith("https://"):
                decoded(body["image"], "image")  # a data URL is refused
        return str(body["external_task_id"])

    def _read_new(self, body: Json, kind: str) -> str:
        only(body, "prompt" if kind == "text-to-video" else "contents", "settings", "options")
        only(body["settings"], "resolution", "aspect_ratio", "duration", "audio", "multi_shot")
        only(body["options"], "external_task_id", "callback_url", "watermark_info")
        require(type(body["settings"]["duration"]) is int, "duration must be an integer")
        require(body["settings"]["audio"] in ("native", "off", "original"), "audio")
        require(isinstance(body["settings"]["multi_shot"], bool), "multi_shot")
        require(kind != "image-to-video" or "aspect_ratio" not in body["settings"], "aspect_ratio")
        for item in body.get("contents", []):
            if item["type"] != "prompt" and not item["url"].startswith("https://"):
                decoded(item["url"], "contents")
        return str(body["options"]["external_task_id"])

    def created(self, task: Task) -> Json:
        return self._envelope(self._task(task, "queued"))

    def _envelope(self, data: Json | list[Json]) -> Json:
        return {"code": 0, "message": "SUCCEED", "request_id": "r", "data": data}

    def _task(self, task: Task, step: str) -> Json:
        if "model_name" not in task.body:
            return self._new_task(task, step)
        answer: Json = {
            "task_id": task.id,
            "task_status": OLD_WORDS.get(step, step),
            "task_info": {"external_task_id": task.external_id},
        }
        if step == "succeeded":
            video = {"id": "v", "url": f"{self.url}/files/{task.id}.mp4", "duration": "5.1"}
            answer["task_result"] = {"videos": [video]}
        elif step == "failed":
            answer["task_status_msg"] = self.failure[1]
        return answer

    def _new_task(self, task: Task, step: str) -> Json:
        answer: Json = {
            "id": task.id,
            "status": NEW_WORDS.get(step, step),
            "message": self.failure[1] if step == "failed" else "",
            "external_id": task.external_id,
        }
        if step == "succeeded":
            url = f"{self.url}/files/{task.id}.mp4"
            answer["outputs"] = [{"type": "video", "id": "v1", "url": url, "watermark_url": "", "duration": "5.1"}]
        return answer

    def other(self, received: ReceivedRequest, key: str) -> web.StreamResponse:
        if (old := OLD.fullmatch(received.path)) is not None:
            task_id = self._id_of(old[2])
            found = self.task_of(task_id, key) if task_id else None
            if found is None or ("image" in found[0].body) != (old[1] == "image2video"):
                raise RefusedError("task not found", status=404)
            return web.json_response(self._envelope(self._task(*found)))
        require(received.path == "/tasks" and len(received.query) == 1, "unknown path")
        [(name, value)] = received.query.items()
        ids = value.split(",")
        self.lists.append(ids)
        if name == "external_task_ids":
            ids = [task_id for external_id in ids if (task_id := self._id_of(external_id))]
        tasks = [self._task(*found) for task_id in ids if (found := self.task_of(task_id, key)) is not None]
        return web.json_response(self._envelope(tasks))

    def _id_of(self, name: str) -> str:
        """Return the id of the task with this id or external id; "" for none."""
        return next((task.id for task in self.tasks.values() if name in (task.id, task.external_id)), "")

    def refuse(self, refused: RefusedError) -> web.Response:
        body = {"code": CODES.get(refused.status, 1201), "message": refused.message, "request_id": "r"}
        return web.json_response(body, status=refused.status)
