"""Strict fake provider of the DashScope format of images (reference, 12): synchronous calls and tasks."""

import re
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.support.providers.ark_sdk import IMAGE
from tests.support.providers.images.image_file_texts import png
from tests.support.providers.server import KEY, FakeProvider, Json, ReceivedRequest, RefusedError

SIZE = re.compile(r"\d{3,4}\*\d{3,4}")
PARAMETERS: dict[str, type] = {
    "n": int,
    "size": str,
    "negative_prompt": str,
    "prompt_extend": bool,
    "watermark": bool,
    "seed": int,
}
SYNC = "/api/v1/services/aigc/multimodal-generation/generation"
ASYNC = "/api/v1/services/aigc/text2image/image-synthesis"
TASKS = "/api/v1/tasks/"
KEYS = (KEY, f"{KEY}-2")


@dataclass(kw_only=True)
class DashscopeImages(FakeProvider):
    """Strict provider of the DashScope format (see the module). Models whose id ends in `-task` take tasks only. A prompt
    with `[[blocked]]` is refused, one with `[[200]]` is refused with status 200, and the second image of a task with
    `[[some]]` fails.
    """

    base_path = ""
    states: tuple[str, ...] = ("PENDING", "RUNNING", "SUCCEEDED")
    tasks: dict[str, tuple[str, Json, int]] = field(default_factory=dict)  # id -> its key, its body, its queries

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if received.method == "GET" and received.path.startswith("/files/"):
            return web.Response(body=png(received.path), content_type="image/png")
        key = received.headers.get("authorization", "").removeprefix("Bearer ")
        if key not in KEYS:
            raise RefusedError("Invalid API-key provided.", code="InvalidApiKey", status=401)
        if received.method == "GET" and received.path.startswith(TASKS):
            return web.json_response(self._queried(received.path.removeprefix(TASKS), key))
        if received.method != "POST" or received.path not in (SYNC, ASYNC):
            raise RefusedError("Not found.", code="NotFound", status=404)
        body = received.json
        if set(body) != {"model", "input", "parameters"}:
            raise RefusedError("Unknown field.", code="InvalidParameter")
        self._check_parameters(body)
        if received.path == SYNC:
            return self._synchronous(body)
        if received.headers.get("x-dashscope-async") != "enable":
            raise RefusedError("current user api does not support synchronous calls.", code="AccessDenied", status=403)
        if set(body["input"]) - {"prompt", "negative_prompt"} or not body["input"]["prompt"]:
            raise RefusedError("Unknown field in input.", code="InvalidParameter")
        task_id = f"t-{len(self.tasks)}"
        self.tasks[task_id] = (key, body, 0)
        output = {"task_id": task_id, "task_status": "PENDING"}
        return web.json_response({"output": output, "request_id": "r-1"})

    def _check_parameters(self, body: Json) -> None:
        for name, value in body["parameters"].items():
            if name not in PARAMETERS or not isinstance(value, PARAMETERS[name]):
                raise RefusedError(f"Wrong parameter: {name}", code="InvalidParameter")
        if "size" in body["parameters"] and not SIZE.fullmatch(body["parameters"]["size"]):
            raise RefusedError("Wrong size.", code="InvalidParameter")

    def _synchronous(self, body: Json) -> web.StreamResponse:
        if body["model"].endswith("-task"):
            raise RefusedError("current user api does not support synchronous calls.", code="AccessDenied", status=403)
        messages = body["input"]["messages"]
        if set(body["input"]) != {"messages"} or len(messages) != 1 or messages[0]["role"] != "user":
            raise RefusedError("Wrong messages.", code="InvalidParameter")
        texts = [piece["text"] for piece in messages[0]["content"] if set(piece) == {"text"}]
        images = [piece["image"] for piece in messages[0]["content"] if set(piece) == {"image"}]
        if len(texts) != 1 or len(texts) + len(images) != len(messages[0]["content"]) or len(images) > 3:
            raise RefusedError("Wrong content.", code="InvalidParameter")
        if not all(IMAGE.fullmatch(image) for image in images):
            raise RefusedError("Wrong image.", code="InvalidImage")
        self._moderate(texts[0])
        if "[[200]]" in texts[0]:
            return web.json_response({"code": "DataInspectionFailed", "message": "Refused.", "request_id": "r-1"})
        content = [{"image": self._url(at)} for at in range(body["parameters"]["n"])]
        choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": content}}
        usage = {"image_count": len(content), "width": 1328, "height": 1328}
        return web.json_response({"output": {"choices": [choice]}, "usage": usage, "request_id": "r-1"})

    def _moderate(self, text: str) -> None:
        if "[[blocked]]" in text:
            raise RefusedError("Input data may contain inappropriate content.", code="DataInspectionFailed")
        if "[[limited]]" in text:
            raise RefusedError("Requests rate limit exceeded.", code="Throttling.RateQuota", status=429)

    def _queried(self, task_id: str, key: str) -> Json:
        """Return the state of a task: the next of `states` at each query. A task of another key is unknown."""
        if task_id not in self.tasks or self.tasks[task_id][0] != key:
            return {"output": {"task_id": task_id, "task_status": "UNKNOWN"}, "request_id": "r-1"}
        _, body, queries = self.tasks[task_id]
        self.tasks[task_id] = (key, body, queries + 1)
        state = self.states[min(queries, len(self.states) - 1)]
        output: dict[str, Any] = {"task_id": task_id, "task_status": state}
        prompt = body["input"]["prompt"]
        if state == "SUCCEEDED":
            results: list[Json] = [{"url": self._url(at)} for at in range(body["parameters"]["n"])]
            if "[[some]]" in prompt:
                results[1:2] = [{"code": "DataInspectionFailed", "message": "Refused."}]
            output["results"] = results
        elif state == "FAILED":
            output |= {"code": "DataInspectionFailed", "message": "Refused."}
        return {"output": output, "request_id": "r-1"}

    def _url(self, at: int) -> str:
        return f"{self.url}/files/{at}.png?Expires=1767323045"

    def refuse(self, refused: RefusedError) -> web.StreamResponse:
        body = {"code": refused.code, "message": refused.message, "request_id": "r-1"}
        return web.json_response(body, status=refused.status)
