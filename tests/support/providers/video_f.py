"""Strict fake provider of the signed visual API (`vidF`), which verifies the signature of every request."""

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from aiohttp import web

from tests.support.providers.common import decoded
from tests.support.providers.server import Json, ReceivedRequest, RefusedError
from tests.support.providers.video_server import Task, VideoProvider, only, require

AVATARS = ("jimeng_realman_avatar_picture_omni_v2", "jimeng_realman_avatar_picture_omni_v15")
"""Models of the actions `CVSubmitTask` and `CVGetResult`."""
ACTORS = ("jimeng_dream_actor_m1_gen_video_cv", "jimeng_dreamactor_m20_gen_video")
INPUTS = dict.fromkeys(AVATARS, ("image_url", "audio_url")) | dict.fromkeys(ACTORS, ("image_url", "video_url"))
WORDS = {"queued": "in_queue", "running": "generating", "succeeded": "done"}
AUTHORIZATION = re.compile(
    r"HMAC-SHA256 Credential=(?P<key>[^/]+)/(?P<date>\d{8})/(?P<region>[\w-]+)/(?P<service>\w+)/request, "
    r"SignedHeaders=(?P<names>[\w;-]+), Signature=(?P<signature>[0-9a-f]{64})"
)


def signature(
    secret: str,
    found: Mapping[str, str],
    method: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    body: bytes,
) -> str:
    """Return the signature of a request, by the steps of the vendor's document."""
    names = found["names"].split(";")
    digest = hashlib.sha256(body).hexdigest()
    parts = [
        method,
        "/",
        "&".join(f"{quote(name, safe='-_.~')}={quote(query[name], safe='-_.~')}" for name in sorted(query)),
        "".join(f"{name}:{headers[name].strip()}\n" for name in names),
        found["names"],
        digest,
    ]
    scope = f"{found['date']}/{found['region']}/{found['service']}/request"
    hashed = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    text = f"HMAC-SHA256\n{headers['x-date']}\n{scope}\n{hashed}"
    key = secret.encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


@dataclass(kw_only=True)
class SignedProvider(VideoProvider):
    pairs: dict[str, str] = field(default_factory=lambda: {"AKEXAMPLE0001": "c2VjcmV0LWV4YW1wbGU="})

    def admit(self, received: ReceivedRequest) -> str:
        found = AUTHORIZATION.fullmatch(received.headers.get("authorization", ""))
        if found is None or found["key"] not in self.pairs:
            raise RefusedError("the access key is invalid", status=401, code="InvalidAccessKey")
        require({"content-type", "host", "x-content-sha256", "x-date"} <= set(found["names"].split(";")), "headers")
        if received.headers["x-content-sha256"] != hashlib.sha256(received.body).hexdigest():
            raise RefusedError("the body has another hash", status=401, code="SignatureDoesNotMatch")
        expected = signature(
            *(self.pairs[found["key"]], found.groupdict(), received.method, received.query),
            *(received.headers, received.body),
        )
        if expected != found["signature"] or (found["region"], found["service"]) != ("cn-north-1", "cv"):
            raise RefusedError("the signature does not match", status=401, code="SignatureDoesNotMatch")
        return found["key"]

    def is_submission(self, received: ReceivedRequest) -> bool:
        return received.query.get("Action") in ("CVSync2AsyncSubmitTask", "CVSubmitTask")

    def is_query(self, received: ReceivedRequest) -> bool:
        return received.query.get("Action") in ("CVSync2AsyncGetResult", "CVGetResult")

    def new_id(self, number: int, model: str) -> str:
        return f"7392{number:015}"

    def read(self, received: ReceivedRequest) -> tuple[str, str]:
        require(received.query["Version"] == "2022-08-31", "Version", code="InvalidActionOrVersion")
        body = received.json
        names = ("req_key", "prompt", "binary_data_base64", "image_urls", "seed", "frames", "aspect_ratio")
        inputs = INPUTS.get(body["req_key"])
        if inputs is not None:
            names = ("req_key", "prompt", "seed", *inputs)
            require("image_url" in body, "image_url")
        require((received.query["Action"] == "CVSubmitTask") is (body["req_key"] in AVATARS), "req_key")
        only(body, *names)
        require(not {"binary_data_base64", "image_urls"} <= body.keys(), "one of the two fields")
        for image in body.get("binary_data_base64", []):
            decoded(image, "binary_data_base64")
        require(body.get("frames", 121) % 24 == 1, "frames")
        return body["req_key"], ""

    def created(self, task: Task) -> Json:
        return self._envelope({"task_id": task.id})

    def _envelope(self, data: Json | None, code: int = 10000, message: str = "Success") -> Json:
        return {"code": code, "data": data, "message": message, "request_id": "r", "status": code}

    def other(self, received: ReceivedRequest, key: str) -> web.StreamResponse:
        body = received.json
        if received.query["Action"] == "CVCancelTask":
            require(received.query["Version"] == "2024-06-06", "Version", code="InvalidActionOrVersion")
            self.cancelled.append(body["task_id"])
            return web.json_response(self._envelope(None))
        only(body, "req_key", "task_id", "req_json")
        require((received.query["Action"] == "CVGetResult") is (body["req_key"] in AVATARS), "req_key")
        require(body["req_json"] == '{"return_url":true}', "req_json")
        found = self.task_of(body["task_id"], key)
        if found is None or found[0].model != body["req_key"]:
            return web.json_response(self._envelope({"status": "not_found"}))
        task, step = found
        if step == "failed":
            code = int(self.failure[0] or 50400)
            return web.json_response(self._envelope(None, code, self.failure[1]), status=400)
        data = {"status": WORDS.get(step, step), "video_url": ""}
        if step == "succeeded":
            data["video_url"] = f"{self.url}/files/{task.id}.mp4"
        return web.json_response(self._envelope(data))

    def refuse(self, refused: RefusedError) -> web.Response:
        if refused.code is not None:
            error = {"CodeN": 100010, "Code": refused.code, "Message": refused.message}
            metadata = {"RequestId": "r", "Action": "x", "Version": "x", "Service": "cv", "Region": "r", "Error": error}
            return web.json_response({"ResponseMetadata": metadata}, status=refused.status)
        return web.json_response(self._envelope(None, 50400, refused.message), status=refused.status)
