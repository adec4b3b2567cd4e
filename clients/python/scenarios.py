"""Program that runs the scenarios of `clients/scenarios.json` and prints the results of each as a line of JSON.

Environment: `UMG_ADDRESS` (HOST:PORT of gRPC), `UMG_API_KEY`, `UMG_ADMIN_KEY`, `UMG_SCENARIOS` (path of the file), and
`UMG_ONLY` (names of scenarios, separated by commas) for some of them. The calls are made by the synchronous client, on
top of the asynchronous one. Nothing is judged here.
"""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

from betterproto2 import Message
from umg_client import SyncClient, UmgError, connect_sync, floats, text, v1

Json = dict[str, Any]

STUBS = {
    "AccountService": "accounts",
    "AdminService": "admin",
    "AlertService": "alerts",
    "AuditService": "audit",
    "ChannelService": "channels",
    "ConfigService": "config",
    "EmbeddingService": "embeddings",
    "FileService": "files",
    "GenerationService": "generation",
    "ImageService": "images",
    "ModelService": "models",
    "ModerationService": "moderations",
    "ModelPriceService": "model_prices",
    "RerankService": "rerank",
    "SpeechService": "speech",
    "TaskService": "tasks",
    "TranscriptionService": "transcriptions",
    "UserService": "users",
    "VideoService": "videos",
}
REFERENCE = re.compile(r"\$\{(\w+)\.([\w.]+)\}")


def weather(city: str) -> str:
    """Return the weather in a city: the tool that the scenarios let a model call."""
    return f"sunny in {city}"


class Runner:
    """Runner of scenarios, with one client for each key and number of retries."""

    def __init__(self, connections: ExitStack) -> None:
        self._connections = connections
        self._clients: dict[tuple[str, int], SyncClient] = {}
        self._calls: dict[str, Callable[[SyncClient, Json], Json]] = {
            "unary": self._unary,
            "stream": self._stream,
            "chat": self._chat,
            "tool_loop": self._tool_loop,
            "floats": self._floats,
            "download": self._download,
            "watch": self._watch,
        }

    def run(self, scenario: Json) -> list[Json]:
        """Return the results of the steps of a scenario."""
        results: list[Json] = []
        saved: dict[str, Json] = {}
        for step in scenario["steps"]:
            arguments = replaced(step.get("args", {}), saved)
            try:
                result = self._calls[step["call"]](self._client(arguments), arguments)
            except UmgError as error:
                result = {"error": described(error)}
            except Exception as failure:  # a mistake in the file or in this client: the other scenarios go on
                result = {"failure": f"{type(failure).__name__}: {failure}"}
            saved[step.get("save", "")] = result
            results.append(result)
        return results

    def _client(self, arguments: Json) -> SyncClient:
        key = arguments.get("key", os.environ["UMG_API_KEY"])
        options = (os.environ["UMG_ADMIN_KEY"] if key == "admin" else key, arguments.get("retries", 2))
        if options not in self._clients:
            connection = connect_sync(os.environ["UMG_ADDRESS"], options[0], retries=options[1])
            self._clients[options] = self._connections.enter_context(connection)
        return self._clients[options]

    def _unary(self, client: SyncClient, arguments: Json) -> Json:
        return {"answer": call(client, arguments).to_dict()}

    def _stream(self, client: SyncClient, arguments: Json) -> Json:
        events: list[Json] = []
        with closing(call(client, arguments)) as stream:
            try:
                for message in stream:
                    events.append(message.to_dict())
                    if len(events) == arguments.get("cancel_after_events"):
                        return {"events": events, "ended": "cancelled"}
            except UmgError as error:
                return {"events": events, "error": described(error)}
        return {"events": events, "ended": "done"}

    def _chat(self, client: SyncClient, arguments: Json) -> Json:
        instructions = arguments.get("instructions", "")
        pieces = client.chat(arguments["model"], arguments["text"], instructions=instructions)
        return {"value": "".join(pieces)}

    def _tool_loop(self, client: SyncClient, arguments: Json) -> Json:
        request = v1.GenerateRequest.from_dict(arguments["request"])
        return {"value": text(client.tool_loop(request, {"weather": weather}))}

    def _floats(self, client: SyncClient, arguments: Json) -> Json:
        answer = client.embeddings.embed(v1.EmbedRequest.from_dict(arguments["request"]))
        return {"value": {"count": len(answer.embeddings), "first": floats(answer.embeddings[0]).tolist()}}

    def _download(self, client: SyncClient, arguments: Json) -> Json:
        progress: list[tuple[int, int | None]] = []

        def record(received: int, total: int | None) -> None:
            progress.append((received, total))

        if "task_id" in arguments:
            content = client.download_video(arguments["task_id"], progress=record)
        else:
            answer = client.images.generate_image(v1.GenerateImageRequest.from_dict(arguments["image"]))
            image = answer.result.images[0] if answer.result else v1.Image()
            content = client.download_image(image, progress=record)
        return {
            "value": {
                "size": len(content.data),
                "mime_type": content.mime_type,
                "sha256": hashlib.sha256(content.data).hexdigest(),
                "progress": len(progress),
                "last": progress[-1],
            }
        }

    def _watch(self, client: SyncClient, arguments: Json) -> Json:
        updates: list[int] = []

        def record(percent: int, _: int | None) -> None:
            updates.append(percent)

        request = v1.CreateVideoTaskRequest.from_dict(arguments["request"])
        task = client.make_video(request, progress=record)
        return {"answer": task.to_dict(), "updates": len(updates)}


def call(client: SyncClient, arguments: Json) -> Any:  # noqa: ANN401 - a message, or an iterator of messages
    """Call the client's method that the arguments of a step name. Return its response."""
    service, name = arguments["method"].split("/")
    method = getattr(getattr(client, STUBS[service]), re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    request: type[Message] = getattr(v1, f"{name}Request")
    milliseconds = arguments.get("deadline_ms")
    return method(
        request.from_dict(prepared(arguments)),
        timeout=None if milliseconds is None else milliseconds / 1000,
        metadata=arguments.get("metadata"),
    )


def prepared(arguments: Json) -> Json:
    """Return the request of a step: with the text as long as requested, and a mask in the form that
    betterproto2 reads.
    """
    request: Json = arguments.get("request", {})
    if "large_text_bytes" in arguments:
        generation = request.get("request", request)
        size = arguments["large_text_bytes"]
        generation["messages"][-1]["parts"][0]["text"]["text"] = ("word " * (size // 5 + 1))[:size]
    if isinstance(request.get("updateMask"), str):
        names = request["updateMask"].split(",")
        request["updateMask"] = {"paths": [re.sub(r"(?=[A-Z])", "_", name).lower() for name in names]}
    return request


def replaced(value: Any, saved: dict[str, Json]) -> Any:  # noqa: ANN401 - any JSON
    """Return a value of the file in which references to results of former steps are replaced by the results."""
    if isinstance(value, dict):
        return {name: replaced(member, saved) for name, member in value.items()}
    if isinstance(value, list):
        return [replaced(item, saved) for item in value]
    if not isinstance(value, str):
        return value
    if whole := REFERENCE.fullmatch(value):
        return found(whole, saved)
    return REFERENCE.sub(lambda match: str(found(match, saved)), value)


def found(reference: re.Match[str], saved: dict[str, Json]) -> Any:  # noqa: ANN401 - any JSON
    """Return the result to which a reference refers; None if there is none, as after a failed step."""
    value: Any = saved.get(reference[1])
    for name in reference[2].split("."):
        if isinstance(value, list):
            value = value[int(name)] if int(name) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


def described(error: UmgError) -> Json:
    """Return the error of a failed step as JSON."""
    return {
        "reason": error.reason.name,
        "field": error.field,
        "code": error.code.name,
        "status": error.code.value,
        "retryable": error.retryable,
        "retry_after": error.retry_after,
        "request_id": error.request_id,
        "metadata": dict(error.metadata),
        "message": error.message,
    }


def lines() -> Iterator[Json]:
    """Yield the results of each scenario as JSON, in the order of the file."""
    only = [name for name in os.environ.get("UMG_ONLY", "").split(",") if name]
    scenarios = json.loads(Path(os.environ["UMG_SCENARIOS"]).read_text())["scenarios"]
    with ExitStack() as connections:
        runner = Runner(connections)
        for scenario in scenarios:
            if not only or scenario["name"] in only:
                yield {"name": scenario["name"], "results": runner.run(scenario)}


if __name__ == "__main__":
    write = partial(print, flush=True)
    for line in lines():
        write(json.dumps(line))
