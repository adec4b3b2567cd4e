"""Paths of the video document in front of a scripted service, with and without a socket."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial

import aiohttp
import pytest

from http_facade.app import Runner, make_app
from tests.unit.http_facade.conftest import KEY, SETTINGS, Context, channel_to, fail
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb, rpc

HINTS = (("openai-poll-after-ms", "5000"), ("retry-after", "5"))
ID = "task_0123456789abcdef0123456789abcdef"
VIDEO = bytes(range(256)) * 8
PNG = b"\x89PNG\r\n\x1a\n"
QUERY = "Action=CVSync2AsyncGetResult&Version=2022-08-31"
SUBMIT = "Action=CVSync2AsyncSubmitTask&Version=2022-08-31"
G_BODY = {"model": "vidG-H3", "content": [{"type": "text", "text": "p"}], "resolution": "2K", "duration": 5}
D_BODY = {"model": "vidD-2-0-260128", "content": [{"type": "text", "text": "p"}]}
D_PATH = "/vidD/api/v3/contents/generations/tasks"


@dataclass
class Videos(rpc.VideoServiceServicer, rpc.ModelServiceServicer):
    failure: UmgError | None = None
    state: "pb.VideoTaskState.ValueType" = pb.VIDEO_TASK_STATE_QUEUED
    etag: str = "tag"
    calls: list[object] = field(default_factory=list)
    metadata: list[dict[str, str]] = field(default_factory=list)

    async def _called(self, request: object, context: Context) -> None:
        self.calls.append(request)
        self.metadata.append({key: str(value) for key, value in context.invocation_metadata() or ()})
        if self.failure is not None:
            await fail(context, self.failure)

    def _task(self, **fields: object) -> pb.VideoTask:
        return pb.VideoTask(task_id=ID, model="m", state=self.state, **fields)

    async def ListModels(self, request: pb.ListModelsRequest, context: Context) -> pb.ListModelsResponse:
        if not dict(context.invocation_metadata() or ()).get("authorization"):
            await fail(context, UmgError(pb.ERROR_REASON_MISSING_KEY, "send a key"))
        return pb.ListModelsResponse()

    async def CreateVideoTask(self, request: pb.CreateVideoTaskRequest, context: Context) -> pb.CreateVideoTaskResponse:
        await self._called(request, context)
        await context.send_initial_metadata(HINTS)
        return pb.CreateVideoTaskResponse(task=self._task(entry=request.entry))

    async def RemixVideoTask(self, request: pb.RemixVideoTaskRequest, context: Context) -> pb.RemixVideoTaskResponse:
        await self._called(request, context)
        return pb.RemixVideoTaskResponse(task=self._task(remixed_from_task_id=request.task_id))

    async def GetVideoTask(self, request: pb.GetVideoTaskRequest, context: Context) -> pb.GetVideoTaskResponse:
        await self._called(request, context)
        await context.send_initial_metadata(HINTS)
        return pb.GetVideoTaskResponse(task=self._task(entry=request.entry))

    async def ListVideoTasks(self, request: pb.ListVideoTasksRequest, context: Context) -> pb.ListVideoTasksResponse:
        await self._called(request, context)
        return pb.ListVideoTasksResponse(tasks=[self._task()])

    async def ReceiveVideoCallback(
        self, request: pb.ReceiveVideoCallbackRequest, context: Context
    ) -> pb.ReceiveVideoCallbackResponse:
        await self._called(request, context)
        return pb.ReceiveVideoCallbackResponse()

    async def DownloadVideo(
        self, request: pb.DownloadVideoRequest, context: Context
    ) -> AsyncGenerator[pb.DownloadVideoResponse, None]:
        await self._called(request, context)
        part, total = request.range, len(VIDEO)
        suffix = part.HasField("limit") and not part.HasField("offset")
        start = max(0, total - part.limit) if suffix else part.offset
        if start >= total:
            message = "the range begins after the end"
            await fail(context, UmgError(pb.ERROR_REASON_RANGE_NOT_SATISFIABLE, message, total_bytes=str(total)))
        end = min(total, start + part.limit) if part.HasField("limit") else total
        yield pb.DownloadVideoResponse(
            head=pb.ContentHead(
                mime_type="video/mp4", total_bytes=total, offset=start, length_bytes=end - start, etag=self.etag
            )
        )
        for position in range(start, end, 1000):
            yield pb.DownloadVideoResponse(chunk=VIDEO[position : min(end, position + 1000)])


@dataclass(frozen=True)
class Face:
    port: int
    client: aiohttp.ClientSession
    service: Videos

    async def call(
        self, method: str, path: str, *, key: bool = True, headers: dict[str, str] | None = None, **arguments: object
    ) -> tuple[aiohttp.ClientResponse, bytes]:
        sent = {**(KEY if key else {}), **(headers or {})}
        url = f"http://127.0.0.1:{self.port}{path}"
        async with self.client.request(method, url, headers=sent, allow_redirects=False, **arguments) as answer:
            return answer, await answer.read()


@pytest.fixture(params=["socket", "in-process"])
async def face(request: pytest.FixtureRequest) -> AsyncIterator[Face]:
    service = Videos()
    async with AsyncExitStack() as stack:
        added = (rpc.add_VideoServiceServicer_to_server, rpc.add_ModelServiceServicer_to_server)
        channel = await channel_to(request.param, stack, *(partial(add, service) for add in added))
        runner = Runner(make_app(channel, SETTINGS))
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        listening = await runner.listen("127.0.0.1", 0)
        client = await stack.enter_async_context(aiohttp.ClientSession())
        yield Face(listening, client, service)


# --- submissions and queries


@dataclass(frozen=True)
class Submission:
    path: str
    body: dict[str, object]
    entry: "pb.VideoEntry.ValueType"
    kind: "pb.VideoTaskKind.ValueType" = pb.VIDEO_TASK_KIND_TEXT_TO_VIDEO


SUBMISSIONS = [
    Submission("/v1/video/generations", {"model": "vidA-2", "prompt": "p"}, pb.VIDEO_ENTRY_UNIFIED),
    Submission("/v1/videos", {"model": "vidA-2", "prompt": "p"}, pb.VIDEO_ENTRY_VIDEO_OBJECT),
    Submission(D_PATH, D_BODY, pb.VIDEO_ENTRY_D),
    Submission("/vidE/v1/videos/text2video", {"model": "vidE-v3", "prompt": "p"}, pb.VIDEO_ENTRY_E_V1),
    Submission(
        "/vidE/v1/videos/image2video",
        {"model": "vidE-v3", "prompt": "p", "image": "https://a.example/a.png"},
        pb.VIDEO_ENTRY_E_V1,
        pb.VIDEO_TASK_KIND_IMAGE_TO_VIDEO,
    ),
    Submission("/vidE/text-to-video/vidE-3.0", {"prompt": "p"}, pb.VIDEO_ENTRY_E_3),
    Submission(
        "/vidE/image-to-video/vidE-3.0-turbo",
        {"prompt": "p", "image": "https://a.example/a.png"},
        pb.VIDEO_ENTRY_E_3,
        pb.VIDEO_TASK_KIND_IMAGE_TO_VIDEO,
    ),
    Submission("/vidE/omni-video/vidE-3.0-omni", {"prompt": "p"}, pb.VIDEO_ENTRY_E_3, pb.VIDEO_TASK_KIND_OMNI),
    Submission(f"/vidF?{SUBMIT}", {"req_key": "vidF_vgfm_t2v_l20", "prompt": "p"}, pb.VIDEO_ENTRY_F),
    Submission("/vidG/v2/video_generation", G_BODY, pb.VIDEO_ENTRY_G),
]


@pytest.mark.parametrize("slash", ["", "/"], ids=["plain", "slash"])
@pytest.mark.parametrize("case", SUBMISSIONS, ids=lambda case: case.path)
async def test_every_submission_reaches_the_service(face: Face, case: Submission, slash: str) -> None:
    path, question, query = case.path.partition("?")
    answer, body = await face.call("POST", path + slash + question + query, json=case.body)
    assert (answer.status, answer.content_type) == (200, "application/json")
    assert ID in body.decode()
    (sent,) = face.service.calls
    assert isinstance(sent, pb.CreateVideoTaskRequest)
    assert (sent.entry, sent.kind) == (case.entry, case.kind)


QUERIES = [
    (f"/v1/video/generations/{ID}", pb.GetVideoTaskRequest(task_id=ID, entry=pb.VIDEO_ENTRY_UNIFIED)),
    (f"/v1/videos/{ID}", pb.GetVideoTaskRequest(task_id=ID, entry=pb.VIDEO_ENTRY_VIDEO_OBJECT)),
    (f"{D_PATH}/{ID}", pb.GetVideoTaskRequest(task_id=ID, entry=pb.VIDEO_ENTRY_D)),
    (
        f"/vidE/v1/videos/image2video/{ID}",
        pb.GetVideoTaskRequest(task_id=ID, entry=pb.VIDEO_ENTRY_E_V1, kind=pb.VIDEO_TASK_KIND_IMAGE_TO_VIDEO),
    ),
    (f"/vidE/tasks?task_ids={ID}", pb.GetVideoTaskRequest(task_id=ID, entry=pb.VIDEO_ENTRY_E_3)),
    ("/vidE/tasks?external_task_ids=a", pb.GetVideoTaskRequest(external_task_id="a", entry=pb.VIDEO_ENTRY_E_3)),
    (f"/vidG/v2/query/video_generation/{ID}", pb.GetVideoTaskRequest(task_id=ID, entry=pb.VIDEO_ENTRY_G)),
]


@pytest.mark.parametrize(("path", "request_"), QUERIES, ids=lambda value: value if isinstance(value, str) else "")
async def test_every_query_reaches_the_service(face: Face, path: str, request_: pb.GetVideoTaskRequest) -> None:
    bare, question, query = path.partition("?")
    for slash in ("", "/"):
        answer, _ = await face.call("GET", bare + slash + question + query)
        assert answer.status == 200
    assert face.service.calls == [request_, request_]


async def test_entry_f_queries_by_its_action(face: Face) -> None:
    body = {"req_key": "vidF_vgfm_t2v_l20", "task_id": ID}
    answer, data = await face.call("POST", f"/vidF?{QUERY}", json=body)
    assert (answer.status, json.loads(data)["data"]) == (200, {"status": "PENDING"})
    assert face.service.calls == [pb.GetVideoTaskRequest(task_id=ID, entry=pb.VIDEO_ENTRY_F, model="vidF_vgfm_t2v_l20")]


@pytest.mark.parametrize("path", ["/vidE/tasks", "/vidE/tasks?task_ids=a&task_ids=b", "/vidE/tasks?task_ids=a,b"])
async def test_entry_e_3_queries_exactly_one_task(face: Face, path: str) -> None:
    answer, body = await face.call("GET", path)
    assert (answer.status, json.loads(body)["error"]["param"]) == (400, "task_ids")


# --- forms


@pytest.mark.parametrize("name", ["input_reference", "image"])
async def test_a_form_with_a_file_and_bracketed_names(face: Face, name: str) -> None:
    form = aiohttp.FormData({"model": "vidA-2", "prompt": "p", "seconds": "8", "metadata[a][]": "x"})
    form.add_field(name, PNG, filename="a.png", content_type="image/png")
    answer, _ = await face.call("POST", "/v1/videos", data=form)
    (sent,) = face.service.calls
    assert isinstance(sent, pb.CreateVideoTaskRequest)
    parameters = sent.parameters
    assert (answer.status, parameters.duration_seconds, parameters.media[0].data) == (200, 8, PNG)
    assert json.loads(parameters.extra_json) == {"metadata": {"a": ["x"]}}


async def test_a_form_without_files_is_accepted(face: Face) -> None:
    form = aiohttp.MultipartWriter("form-data")
    for name, value in (("model", "vidE-v3"), ("prompt", "p"), ("image", "https://a.example/a.png")):
        form.append(value).set_content_disposition("form-data", name=name)
    answer, _ = await face.call("POST", "/vidE/v1/videos/image2video", data=form)
    assert answer.status == 200


async def test_an_entry_without_forms_refuses_one(face: Face) -> None:
    answer, body = await face.call("POST", D_PATH, data=aiohttp.FormData({"model": "m"}, default_to_multipart=True))
    assert (answer.status, set(json.loads(body))) == (415, {"error"})


# --- hints and headers


@pytest.mark.parametrize("path", ["/v1/videos", f"/v1/videos/{ID}"])
async def test_an_unfinished_task_states_when_to_query_it_again(face: Face, path: str) -> None:
    method, body = ("GET", None) if path.endswith(ID) else ("POST", {"model": "vidA-2", "prompt": "p"})
    answer, _ = await face.call(method, path, json=body)
    assert [(name, value) for name, value in HINTS if answer.headers.getall(name) == [value]] == [*HINTS]


async def test_the_idempotency_key_and_the_count_of_retries_are_passed_on(face: Face) -> None:
    headers = {"Idempotency-Key": "k-1", "x-stainless-retry-count": "1"}
    await face.call("POST", "/v1/videos", json={"model": "vidA-2", "prompt": "p"}, headers=headers)
    await face.call("POST", f"/v1/videos/{ID}/remix", json={"prompt": "p"}, headers=headers)
    assert [call.idempotency_key for call in face.service.calls] == ["k-1", "k-1"]  # type: ignore[attr-defined]
    assert {sent["x-stainless-retry-count"] for sent in face.service.metadata} == {"1"}


async def test_a_long_idempotency_key_is_refused(face: Face) -> None:
    answer, body = await face.call("POST", D_PATH, json=D_BODY, headers={"Idempotency-Key": "k" * 256})
    assert (answer.status, "Idempotency-Key" in json.loads(body)["error"]["message"]) == (400, True)


@pytest.mark.parametrize(
    ("reason", "value"),
    [
        (pb.ERROR_REASON_UPSTREAM_TIMEOUT, "false"),
        (pb.ERROR_REASON_INTERNAL, "false"),
        (pb.ERROR_REASON_UPSTREAM_UNREACHABLE, None),
    ],
)
async def test_a_submission_with_an_unknown_outcome_is_not_to_be_repeated(
    face: Face, reason: "pb.ErrorReason.ValueType", value: str | None
) -> None:
    face.service.failure = UmgError(reason, "no")
    answer, _ = await face.call("POST", "/v1/videos", json={"model": "vidA-2", "prompt": "p"})
    assert (answer.status >= 500, answer.headers.get("x-should-retry")) == (True, value)


# --- errors


@pytest.mark.parametrize("case", SUBMISSIONS, ids=lambda case: case.path)
async def test_a_key_is_required_before_the_body_is_read(face: Face, case: Submission) -> None:
    answer, body = await face.call("POST", case.path, key=False, json={})
    assert (answer.status, bool(json.loads(body)["error"]["message"])) == (401, True)
    assert face.service.calls == []


async def test_an_error_names_the_field_of_the_body(face: Face) -> None:
    body = {"model": "vidA-2", "prompt": "p", "seconds": "5"}
    answer, data = await face.call("POST", "/v1/video/generations", json=body)
    assert (answer.status, json.loads(data)["error"]["param"]) == (400, "seconds")
    face.service.failure = UmgError(
        pb.ERROR_REASON_INVALID_FIELD, "parameters.seed: too large", field="parameters.seed"
    )
    answer, data = await face.call("POST", "/vidE/v1/videos/text2video", json={"model": "vidE-v9", "prompt": "p"})
    error = json.loads(data)["error"]
    assert (error["param"], error["message"]) == ("metadata.seed", "metadata.seed: too large")


@pytest.mark.parametrize(
    ("method", "path", "members"),
    [
        ("POST", "/v1/videos/edits", {"error"}),
        ("POST", "/v1/videos/extensions", {"error"}),
        ("POST", "/v1/videos/characters", {"error"}),
        ("GET", "/v1/videos/characters/c-1", {"error"}),
        ("POST", "/vidD/api/v3/files", {"error"}),
        ("POST", "/vidE/v1/videos/lip-sync", {"code", "message", "request_id", "error"}),
        ("POST", "/vidG/v2/other", {"type", "error", "request_id"}),
    ],
)
async def test_other_paths_of_the_apis_are_json_errors_of_their_format(
    face: Face, method: str, path: str, members: set[str]
) -> None:
    answer, body = await face.call(method, path, json={})
    assert (answer.status, answer.content_type, set(json.loads(body))) == (404, "application/json", members)


# --- list, removal, remix


async def test_a_list(face: Face) -> None:
    answer, body = await face.call("GET", "/v1/videos?limit=5&order=asc")
    assert (answer.status, json.loads(body)["first_id"]) == (200, ID)
    assert face.service.calls == [
        pb.ListVideoTasksRequest(page_size=5, order=pb.VIDEO_TASK_ORDER_OLDEST_FIRST, entry=pb.VIDEO_ENTRY_VIDEO_OBJECT)
    ]


# --- content

CONTENT = f"/v1/videos/{ID}/content"


@pytest.mark.parametrize(
    ("range_", "start", "end"),
    [("bytes=0-9", 0, 10), ("bytes=2000-", 2000, 2048), ("bytes=-48", 2000, 2048), ("bytes=2040-9999", 2040, 2048)],
)
async def test_a_range_is_a_part(face: Face, range_: str, start: int, end: int) -> None:
    answer, body = await face.call("GET", CONTENT, headers={"range": range_})
    assert (answer.status, body) == (206, VIDEO[start:end])
    assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/{len(VIDEO)}"


@pytest.mark.parametrize("range_", ["bytes=0-1,5-6", "bytes=9-3", "lines=1-2", "bytes=-"])
async def test_another_range_selects_the_whole(face: Face, range_: str) -> None:
    answer, body = await face.call("GET", CONTENT, headers={"range": range_})
    assert (answer.status, body) == (200, VIDEO)


async def test_a_range_after_the_end_is_416(face: Face) -> None:
    answer, _ = await face.call("GET", CONTENT, headers={"range": "bytes=2048-"})
    assert (answer.status, answer.headers["content-range"]) == (416, f"bytes */{len(VIDEO)}")


async def test_conditions_by_the_entity_tag(face: Face) -> None:
    answer, body = await face.call("GET", CONTENT, headers={"if-none-match": '"tag"'})
    assert (answer.status, body) == (304, b"")
    answer, body = await face.call("GET", CONTENT, headers={"range": "bytes=0-9", "if-range": '"tag"'})
    assert (answer.status, len(body)) == (206, 10)
    answer, body = await face.call("GET", CONTENT, headers={"range": "bytes=0-9", "if-range": '"other"'})
    assert (answer.status, len(body)) == (200, len(VIDEO))


async def test_an_index_and_a_variant_are_passed_on(face: Face) -> None:
    await face.call("GET", f"{CONTENT}?index=1&variant=last_frame")
    assert face.service.calls == [pb.DownloadVideoRequest(task_id=ID, index=1, variant=pb.VIDEO_VARIANT_LAST_FRAME)]


@pytest.mark.parametrize("query", ["index=-1", "index=x", "variant=gif"])
async def test_other_parameters_are_refused(face: Face, query: str) -> None:
    answer, _ = await face.call("GET", f"{CONTENT}?{query}")
    assert (answer.status, face.service.calls) == (400, [])


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        (pb.ERROR_REASON_WRONG_STATE, 400),
        (pb.ERROR_REASON_OBJECT_NOT_FOUND, 404),
        (pb.ERROR_REASON_UPSTREAM_UNREACHABLE, 502),
    ],
)
async def test_a_failure_before_the_content_is_a_json_error(
    face: Face, reason: "pb.ErrorReason.ValueType", status: int
) -> None:
    face.service.failure = UmgError(reason, "task is not completed yet, current status: queued")
    answer, body = await face.call("GET", CONTENT)
    error = json.loads(body)["error"]
    assert (answer.status, "queued" in error["message"]) == (status, True)
    assert status >= 500 or error["type"] == "invalid_request_error"


# --- notifications of providers

CALLBACK = f"/vidE/callbacks/{ID}/abc"


async def test_a_notification_needs_no_key(face: Face) -> None:
    headers = {"webhook-id": "1", "x-other": "2"}
    answer, body = await face.call("POST", CALLBACK, key=False, json={"id": "1"}, headers=headers)
    assert (answer.status, json.loads(body)) == (200, {"code": 0, "message": "success"})
    (sent,) = face.service.calls
    assert sent == pb.ReceiveVideoCallbackRequest(
        task_id=ID, signature="abc", body=b'{"id": "1"}', headers={"webhook-id": "1"}
    )


async def test_a_wrong_signature_is_the_error_of_the_service(face: Face) -> None:
    face.service.failure = UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, "no such notification")
    answer, body = await face.call("POST", CALLBACK, key=False, json={"id": "1"})
    assert (answer.status, json.loads(body)["code"]) == (404, 1203)
