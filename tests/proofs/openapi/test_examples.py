"""Examples of the API reference: each call succeeds at a gateway with the simulated provider, as the document states."""

import asyncio
import base64
import json
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import aiohttp
import jsonschema
import msgspec
import pytest
import pytest_asyncio

from http_facade.openapi.openapi_document import document
from tests.proofs.openapi.gateway import CALLER, CONFIG
from tests.support.gateways import Running, running
from umg_grpc.wire.core.audio_file_properties import wav_file

JSON_TYPE, EVENTS_TYPE, FORM_TYPE = "application/json", "text/event-stream", "multipart/form-data"
STREAM_TYPE = "application/connect+json"
SPEECH = wav_file(bytes(4800), 24_000)
FILE = "@speech.wav"
SIGNED = ("/vidE/callbacks/", "/umg.v1.VideoService/ReceiveVideoCallback")
"""Paths that only providers call, with a signature."""
CREATORS = {
    "/v1/video/generations/": ("/v1/video/generations", "task_id"),
    "/v1/videos/": ("/v1/videos", "id"),
    "/vidD/": ("/vidD/api/v3/contents/generations/tasks", "id"),
    "/vidE/v1/videos/text2video/": ("/vidE/v1/videos/text2video", "task_id"),
    "/vidE/v1/videos/image2video/": ("/vidE/v1/videos/image2video", "task_id"),
    "/vidE/tasks": ("/vidE/text-to-video/{model}", "data.0.id"),
    "/vidG/": ("/vidG/v2/video_generation", "task_id"),
    "/admin/v1/tasks/": ("/v1/videos", "id"),
    "/umg.v1.TaskService/": ("/v1/videos", "id"),
    "/umg.v1.VideoService/": ("/umg.v1.VideoService/CreateVideoTask", "task.taskId"),
}
"""Beginning of a path -> the path of the example that makes its task, and the place of the id in its response."""
FINISHED = ("content", "remix", "RemixVideoTask", "DownloadVideo")
"""Ends of paths that need a task that succeeded."""
NOTIFIED = ("redeliver", "RedeliverCallback")
"""Ends of paths that need a task with a notification."""

NOT_YET = {"cancel": 400, "CancelStoredResponse": 400}
"""End of the path of an operation that is refused by every gateway of this version, as its description states -> status."""

DOCUMENT: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document()))
numbers = count()

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True)
class Example:
    method: str
    path: str
    content: str = ""
    """Content type of the body; "" without one."""
    body: Any = None

    @property
    def id(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def operation(self) -> dict[str, Any]:
        found: dict[str, Any] = DOCUMENT["paths"][self.path][self.method]
        return found

    def target(self) -> tuple[str, dict[str, str]]:
        """Return the path and the query of the example, still with words for ids."""
        path, query = self.path, {}
        for parameter in self.operation["parameters"]:
            if parameter["in"] == "path":
                path = path.replace(f"{{{parameter['name']}}}", parameter["example"])
            elif "example" in parameter:
                query[parameter["name"]] = parameter["example"]
        return path, query


def examples() -> Iterator[Example]:
    for path, operations in DOCUMENT["paths"].items():
        for method, operation in operations.items():
            bodies = [
                (kind, described["example"])
                for kind, described in operation.get("requestBody", {}).get("content", {}).items()
                if "example" in described
            ]
            for kind, body in bodies or [("", None)]:
                yield Example(method, path, kind, body)


EXAMPLES = [example for example in examples() if not example.path.startswith(SIGNED)]
BY_PATH = {example.path: example for example in EXAMPLES if example.method == "post"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    async with running(CONFIG, tmp_path_factory.mktemp("gateway")) as state:
        yield state


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(gateway: Running) -> AsyncGenerator[aiohttp.ClientSession, None]:
    async with aiohttp.ClientSession(gateway.url, headers=gateway.headers) as session:
        yield session


def payload(example: Example, body: Any) -> dict[str, Any]:
    """Return the arguments of a request with the body of an example."""
    match example.content:
        case "":
            return {}
        case "multipart/form-data":
            form = aiohttp.FormData(default_to_multipart=True)
            for name, value in body.items():
                form.add_field(
                    name, *((SPEECH,) if value == FILE else (value,)), filename="speech.wav" if value == FILE else None
                )
            return {"data": form}
        case "application/connect+json":
            data = json.dumps(body).encode()
            return {"data": struct.pack(">BI", 0, len(data)) + data, "headers": {"content-type": STREAM_TYPE}}
        case _:
            return {"json": body}


def filled(value: Any, words: dict[str, str]) -> Any:
    """Return a value of an example with ids in place of words, and with files."""
    text = json.dumps(value).replace(json.dumps(FILE), json.dumps(base64.b64encode(SPEECH).decode()))
    for word, found in words.items():
        text = text.replace(word, found)
    return json.loads(text)


async def send(
    client: aiohttp.ClientSession, example: Example, words: dict[str, str] | None = None
) -> tuple[int, str, bytes, str]:
    """Call an example. Return status, content type and body of the response, and the id of the request."""
    path, query = filled([*example.target()], words or {})
    body = example.body if example.content == FORM_TYPE else filled(example.body, words or {})
    async with client.request(example.method, path, params=query, **payload(example, body)) as response:
        return response.status, response.content_type, await response.read(), response.headers["x-request-id"]


async def create(client: aiohttp.ClientSession, path: str, place: str, **changed: Any) -> str:
    """Make an object by the example of a path. Return its id, which is at `place` of the response."""
    example = BY_PATH[path]
    status, _, body, _ = await send(client, replace(example, body=example.body | changed))
    assert status == 200, body
    found = json.loads(body)
    for name in place.split("."):
        found = found[int(name) if name.isdigit() else name]
    return str(found)


async def messages(body: bytes) -> AsyncIterator[Any]:
    """Yield the messages of a stream of the Connect protocol. Its end must have no error."""
    at = 0
    while at < len(body):
        flags, length = struct.unpack_from(">BI", body, at)
        message = json.loads(body[at + 5 : at + 5 + length])
        at += 5 + length
        if flags & 2:
            assert "error" not in message, message
        else:
            yield message


async def recorded(client: aiohttp.ClientSession, request_id: str) -> None:
    """Wait until a call has its record."""
    async with asyncio.timeout(60):
        while True:
            async with client.get(f"/admin/v1/requests/{request_id}") as response:
                if response.status == 200:
                    return


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def video(client: aiohttp.ClientSession) -> dict[str, str]:
    """Make a video. Return the id of its task and the token of its file, by the words in examples."""
    words = {"TASK_ID": await create(client, "/v1/videos", "id")}
    *_, body, _ = await send(client, BY_PATH["/umg.v1.VideoService/WatchVideoTask"], words)
    [*_, last] = [message async for message in messages(body)]
    return words | {"FILE_TOKEN": last["task"]["results"][0]["url"].rpartition("/")[2]}


async def sign_in(client: aiohttp.ClientSession) -> str:
    """Open a session by the key of the client. Return its id."""
    key = client.headers["authorization"].removeprefix("Bearer ")
    async with client.post("/auth/login", data={"key": key}, headers={"sec-fetch-site": "same-origin"}) as response:
        assert response.status == 200
    async with client.get("/admin/v1/sessions") as response:
        return str((await response.json())["sessions"][0]["session_id"])


async def words_of(client: aiohttp.ClientSession, example: Example, video: dict[str, str]) -> dict[str, str]:
    """Make the objects that an example is about. Return their ids by the words in the example. `video`: those of a video
    that is ready.
    """
    text = json.dumps([example.target(), example.body])
    words = {}
    if "RESPONSE_ID" in text:
        words["RESPONSE_ID"] = await create(client, "/v1/responses", "id")
    if "KEY_ID" in text:
        words["KEY_ID"] = await create(
            client, "/admin/v1/keys", "key.key_id", settings={"name": f"key {next(numbers)}"}
        )
    if "ACCOUNT_ID" in text:
        path = "/admin/v1/organizations" if "/organizations" in example.path else "/admin/v1/projects"
        settings = {"name": f"account {next(numbers)}"}
        words["ACCOUNT_ID"] = await create(client, path, "account.account_id", settings=settings)
    if "USER_ID" in text:
        words["USER_ID"] = await create(client, "/admin/v1/users", "user.user_id")
    if "SESSION_ID" in text:
        words["SESSION_ID"] = await sign_in(client)
    if "REQUEST_ID" in text:
        *_, words["REQUEST_ID"] = await send(client, BY_PATH["/v1/chat/completions"])
        await recorded(client, words["REQUEST_ID"])
    if example.path.endswith(FINISHED) or "FILE_TOKEN" in text:
        return words | video
    if example.path.endswith(NOTIFIED):
        metadata = {"callback_url": f"http://{CALLER}/hook"}
        words["TASK_ID"] = await create(client, "/v1/video/generations", "task_id", metadata=metadata)
        await send(client, BY_PATH["/umg.v1.VideoService/WatchVideoTask"], words)
    elif "TASK_ID" in text:
        path, place = next(row for start, row in CREATORS.items() if example.path.startswith(start))
        words["TASK_ID"] = await create(client, path, place)
    return words


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
async def test_an_example_succeeds_and_its_response_has_the_documented_form(
    client: aiohttp.ClientSession, video: dict[str, str], example: Example
) -> None:
    status, content_type, body, _ = await send(client, example, await words_of(client, example, video))
    if (refused := NOT_YET.get(example.path.rpartition("/")[2])) is not None:
        assert status == refused
        return
    assert status == 200, body[:500]
    content = example.operation["responses"]["200"].get("content", {"*/*": {}})
    described = content.get(content_type) or content.get(f"{content_type.split('/')[0]}/*") or content["*/*"]
    schema = {**described.get("schema", {}), "components": DOCUMENT["components"]}
    if content_type == JSON_TYPE:
        jsonschema.Draft202012Validator(schema).validate(json.loads(body))
    elif content_type == EVENTS_TYPE:
        validator = jsonschema.Draft202012Validator({**schema["x-event-schema"], "components": DOCUMENT["components"]})
        events = [line for line in body.decode().splitlines() if line.startswith("data: {")]
        assert events
        for event in events:
            validator.validate(json.loads(event.removeprefix("data: ")))
    elif content_type == STREAM_TYPE:
        validator = jsonschema.Draft202012Validator(
            {**schema["x-message-schema"], "components": DOCUMENT["components"]}
        )
        received = [message async for message in messages(body)]
        assert received
        for message in received:
            validator.validate(message)
    else:
        assert body


async def test_every_operation_with_a_body_or_an_id_has_an_example() -> None:
    for example in EXAMPLES:
        assert example.content or "requestBody" not in example.operation, f"{example.id}: call_examples.json"
        for parameter in example.operation["parameters"]:
            assert parameter["in"] != "path" or parameter["example"], f"{example.id}: call_examples.py"
