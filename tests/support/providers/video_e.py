"""Strict fake provider of family E (`vidE`): the old and the new API, keys and short-lived tokens, external ids."""

import re
from dataclasses import dataclass, field

import jwt
from aiohttp import web

from tests.support.providers.common import decoded
from tests.support.providers.server import Json, ReceivedRequest, RefusedError
from tests.support.providers.video_server import Task, VideoProvider, only, require

OLD = re.compile(r"/v1/videos/(text2video|image2video|multi-image2video|omni-video|motion-control)(?:/([\w.-]+))?")
NEW = re.compile(r"/(text-to-video|image-to-video|omni-video|motion-control)/([\w.-]+)")
OLD_WORDS = {"queued": "submitted", "running": "processing", "succeeded": "succeed"}
NEW_WORDS = {"queued": "submitted", "running": "processing"}
CODES = {401: 1002, 404: 1203}
OF_ALL = ("model_name", "prompt", "mode", "watermark_info", "callback_url", "external_task_id")
OF_TIMED = (*OF_ALL, "duration", "negative_prompt", "cfg_scale")
OF_SHOTS = ("sound", "camera_control", "multi_shot", "shot_type", "multi_prompt", "voice_list")
OLD_MEMBERS = {
    "text2video": (*OF_TIMED, *OF_SHOTS, "aspect_ratio"),
    "image2video": (
        *(*OF_TIMED, *OF_SHOTS, "image", "image_tail"),
        *("static_mask", "dynamic_masks", "element_list"),
    ),
    "multi-image2video": (*OF_TIMED, "image_list", "aspect_ratio"),
    "omni-video": (
        *(*OF_ALL, "duration", "aspect_ratio", "image_list", "video_list", "sound"),
        *("multi_shot", "shot_type", "multi_prompt", "element_list"),
    ),
    "motion-control": (
        *(*OF_ALL, "video_url", "image_url", "character_orientation"),
        *("keep_original_sound", "element_list"),
    ),
}
"""Operation of the old API -> members of its body: vercel/ai packages/klingai 4.0.31 (in no registry, so that no test
reads it; read 2026-11-29), and ComfyUI's models of `omni-video`.
"""
OLD_IDS = re.compile(r"kling-(?:v\d(?:-\d)?(?:-(?:master|turbo|omni))?|video-o1)|vidE-[\w-]+")
"""Names of models of the old API: with hyphens, without the operation."""
TAIL_IN_PRO = re.compile(r"kling-v(?:1-[56]|2-[16])")
"""Models of the old API with a last frame in the mode `pro` only: ComfyUI's capability map, docs.apimart.ai."""
SOUND_IN_PRO = "kling-v2-6"
SOUND_IN_1080P = "kling-2.6"
"""Models with sound in the mode `pro` or in 1080p only, and not beside a last frame: vercel/ai packages/klingai."""
SECONDS = {"kling-2.5-turbo": (5, 10), "kling-2.6": (5, 10), "kling-o1": tuple(range(3, 11))}
SOUNDS = {"kling-2.5-turbo": (), "kling-o1": ("original", "off"), "kling-3.0-turbo": ()}
CONTENTS = {
    "image-to-video": ("prompt", "first_frame", "last_frame", "element", "voice"),
    "omni-video": ("prompt", "first_frame", "last_frame", "refer_image", "feature_video", "base_video", "element"),
    "motion-control": ("prompt", "image", "video", "element"),
}
NEW_IDS = {
    "text-to-video": ("kling-3.0-turbo", "kling-3.0", "kling-2.6", "kling-2.5-turbo"),
    "image-to-video": ("kling-3.0-turbo", "kling-3.0", "kling-2.6", "kling-2.5-turbo"),
    "omni-video": ("kling-3.0-omni", "kling-o1"),
    "motion-control": ("kling-3.0", "kling-2.6"),
}
"""Operation of the new API -> its models, by the vendor's pages of 2026-09-20."""


@dataclass(kw_only=True)
class FamilyEProvider(VideoProvider):
    pairs: dict[str, str] = field(default_factory=dict)
    """Access keys with their secrets; only the old API accepts tokens made by them."""
    operations: dict[str, str] = field(default_factory=dict)
    """External ids of the tasks of the old API with their operations."""
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
            self.operations[external_id] = old[1]
            model = body["model_name"]
        else:
            found = NEW.fullmatch(received.path)
            assert found is not None
            model = found[2]
            external_id = self._read_new(body, found[1], model)
        require(re.fullmatch(r"[A-Za-z0-9._-]{1,191}", external_id), "external_task_id")
        require(all(task.external_id != external_id for task in self.tasks.values()), "external_task_id is taken")
        return model, external_id

    def _read_old(self, body: Json, kind: str) -> str:
        only(body, *OLD_MEMBERS[kind])
        require(OLD_IDS.fullmatch(body["model_name"]), "model_name")
        require(isinstance(body.get("duration", ""), str), "duration must be a string")
        require(body.get("sound", "on") in ("on", "off"), "sound")
        require(body.get("mode", "std") in ("std", "pro", "4k"), "mode")
        model, is_pro = body["model_name"], body.get("mode") == "pro"
        has_tail, has_sound = "image_tail" in body, body.get("sound") == "on"
        require(is_pro or not has_tail or not TAIL_IN_PRO.fullmatch(model), "image_tail needs the mode pro")
        require(model != SOUND_IN_PRO or not has_sound or (is_pro and not has_tail), "sound needs the mode pro")
        images = [body[name] for name in ("image", "image_tail", "static_mask", "image_url") if name in body]
        images += [item["image" if kind.startswith("multi") else "image_url"] for item in body.get("image_list", [])]
        if kind in ("image2video", "multi-image2video"):
            require(images, "an image")
        if kind == "motion-control":
            require(body["video_url"].startswith("https://"), "video_url")
            require(body["character_orientation"] in ("image", "video") and "mode" in body, "character_orientation")
            require(body.get("keep_original_sound", "yes") in ("yes", "no"), "keep_original_sound")
        for item in body.get("image_list", []) if kind == "omni-video" else []:
            require(item.get("type", "first_frame") in ("first_frame", "end_frame"), "type")
        for item in body.get("video_list", []):
            require(item["refer_type"] in ("base", "feature"), "refer_type")
            require(item["video_url"].startswith("https://"), "video_url")
        for image in images:
            if not image.startswith("https://"):
                decoded(image, "image")  # a data URL is refused
        return str(body["external_task_id"])

    def _read_new(self, body: Json, kind: str, model: str) -> str:
        require(model in NEW_IDS[kind] or model.startswith("vidE"), f"unknown model {model}")
        only(body, "prompt" if kind == "text-to-video" else "contents", "settings", "options")
        settings, timed = body["settings"], kind != "motion-control"
        names = ["resolution", *(["aspect_ratio"] if kind in ("text-to-video", "omni-video") else [])]
        names += ["duration"] if timed else ["character_orientation"]
        names += ["audio"] if SOUNDS.get(model, ("off",)) else []
        names += ["multi_shot"] if timed and model in ("kling-3.0", "kling-3.0-omni") else []
        only(settings, *names)
        only(body["options"], "external_task_id", "callback_url", "watermark_info")
        tall = ("4k",) if timed and model in ("kling-3.0", "kling-3.0-omni") else ()
        require(settings.get("resolution", "720p") in ("720p", "1080p", *tall), "resolution")
        require(type(settings.get("duration", 5)) is int, "duration must be an integer")
        require(settings.get("duration", 5) in SECONDS.get(model, range(3, 16)), "duration")
        sounds = SOUNDS.get(model, ("native", "off", "original")) if timed else ("original", "off")
        require("audio" not in settings or settings["audio"] in sounds, "audio")
        if model == SOUND_IN_1080P and timed:
            with_tail = any(item["type"] == "last_frame" for item in body.get("contents", []))
            with_sound = settings.get("audio") == "native"
            require(not (with_tail and with_sound), "audio beside a last frame")
            is_large = settings.get("resolution") == "1080p"
            require(is_large or not (with_tail or with_sound), "resolution must be 1080p")
        require(isinstance(settings.get("multi_shot", True), bool), "multi_shot")
        require(timed or settings["character_orientation"] in ("image", "video"), "character_orientation")
        for item in body.get("contents", []):
            require(item["type"] in CONTENTS[kind], "type")
            if item["type"].endswith("video"):
                require(item["url"].startswith("https://"), "video")
                require(item["type"] != "feature_video" or settings.get("multi_shot", True), "multi_shot")
            elif item["type"] not in ("prompt", "element", "voice") and not item["url"].startswith("https://"):
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
            if found is None or self.operations.get(found[0].external_id) != old[1]:
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
        return next((task.id for task in self.tasks.values() if name in (task.id, task.external_id)), "")

    def refuse(self, refused: RefusedError) -> web.Response:
        body = {"code": CODES.get(refused.status, 1201), "message": refused.message, "request_id": "r"}
        return web.json_response(body, status=refused.status)
