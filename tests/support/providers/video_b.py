"""Strict fake provider of long-running video operations (`vidB`), with both APIs."""

from base64 import b64encode
from dataclasses import dataclass

from aiohttp import web

from tests.support.providers.common import IMAGES, decoded, media_of
from tests.support.providers.server import Json, ReceivedRequest, RefusedError
from tests.support.providers.video_server import FILE, Task, VideoProvider, only, require

VERTEX = "/v1/projects/p/locations/us-central1/publishers/google"
GEMINI = "/v1beta"
PARAMETERS = (
    "sampleCount",
    "durationSeconds",
    "aspectRatio",
    "resolution",
    "personGeneration",
    "negativePrompt",
    "seed",
)
VERTEX_PARAMETERS = (*PARAMETERS, "generateAudio", "fps", "addWatermark", "enhancePrompt", "resizeMode")
FILTERED = "filtered"
"""Step of a plan: the content filter removes the videos."""


@dataclass(kw_only=True)
class OperationProvider(VideoProvider):
    def admit(self, received: ReceivedRequest) -> str:
        key = received.headers.get("x-goog-api-key") or received.headers.get("authorization", "").removeprefix(
            "Bearer "
        )
        if key not in self.keys:
            raise RefusedError("API key not valid", status=401, code="UNAUTHENTICATED")
        return key

    def is_submission(self, received: ReceivedRequest) -> bool:
        return received.path.endswith(":predictLongRunning")

    def is_query(self, received: ReceivedRequest) -> bool:
        return received.path.endswith(":fetchPredictOperation") or "/operations/" in received.path

    def new_id(self, number: int, model: str) -> str:
        return f"{model}/operations/{number:08}-3f2a"

    def read(self, received: ReceivedRequest) -> tuple[str, str]:
        is_vertex = received.path.startswith(VERTEX)
        root = VERTEX if is_vertex else GEMINI
        model = received.path.removeprefix(f"{root}/").removesuffix(":predictLongRunning")
        require(model.startswith("models/"), "unknown path")
        body = received.json
        only(body, "instances", "parameters")
        only(body["parameters"], *(VERTEX_PARAMETERS if is_vertex else PARAMETERS))
        [instance] = body["instances"]
        only(instance, "prompt", "image", "lastFrame", "video", "referenceImages")
        for name in {"image", "lastFrame"} & instance.keys():
            only(instance[name], "bytesBase64Encoded", "mimeType")
            media_of(instance[name]["mimeType"], decoded(instance[name]["bytesBase64Encoded"], name), IMAGES, name)
        seconds = body["parameters"].get("durationSeconds", 8)
        require(seconds in (4, 6, 8), "durationSeconds")
        if body["parameters"].get("resolution") in ("1080p", "4k"):
            require(seconds == 8, "durationSeconds must be 8 for this resolution")
        return f"{VERTEX[4:]}/{model}" if is_vertex else model, ""

    def created(self, task: Task) -> Json:
        return {"name": task.id}

    def other(self, received: ReceivedRequest, key: str) -> web.StreamResponse:
        if ":download" in received.path:
            require(received.query.get("alt") == "media", "alt")
            return web.Response(body=FILE, content_type="video/mp4")
        if received.path.endswith(":fetchPredictOperation"):
            name = received.json["operationName"]
            require(
                received.path.removeprefix("/v1/") == f"{name.partition('/operations/')[0]}:fetchPredictOperation",
                "path",
            )
        else:
            name = received.path.removeprefix(f"{GEMINI}/")
        if (found := self.task_of(name, key)) is None:
            raise RefusedError("operation not found", status=404, code="NOT_FOUND")
        return web.json_response(self._operation(*found))

    def _operation(self, task: Task, step: str) -> Json:
        answer: Json = {"name": task.id}
        is_vertex = task.id.startswith("projects/")
        match step:
            case "succeeded":
                count = task.body["parameters"].get("sampleCount", 1)
                video = {"bytesBase64Encoded": b64encode(FILE).decode(), "mimeType": "video/mp4"}
                uri = f"{self.url}{GEMINI}/files/x:download?alt=media"
                samples = {"generatedSamples": [{"video": {"uri": uri}}] * count}
                response: Json = {"videos": [video] * count} if is_vertex else {"generateVideoResponse": samples}
                return answer | {"done": True, "response": response}
            case "filtered":
                filtered: Json = {"raiMediaFilteredCount": 1, "raiMediaFilteredReasons": ["Blocked by the filter."]}
                return answer | {
                    "done": True,
                    "response": filtered if is_vertex else {"generateVideoResponse": filtered},
                }
            case "failed":
                return answer | {"done": True, "error": {"code": 13, "message": self.failure[1]}}
            case _:
                return answer | {"metadata": {"state": step}}

    def refuse(self, refused: RefusedError) -> web.Response:
        error = {"code": refused.status, "message": refused.message, "status": refused.code or "INVALID_ARGUMENT"}
        return web.json_response({"error": error}, status=refused.status)
