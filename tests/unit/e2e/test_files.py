"""Result files by their signed links, on both faces: whole, in parts, conditionally, and not at all."""

import asyncio
import json
import os
import re
import resource
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime
from pathlib import Path

import aiohttp
import grpc
import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from tests.support.gateways import ANY, SANDBOX, Running, running
from umg_grpc.access.signed_file_links import FileLinks
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.config import Address, parse
from umg_grpc.process.serve_options import Options
from umg_grpc.process.serve_process import gateway
from umg_grpc.store.blob_store import Blob, BlobStore
from umg_grpc.v1 import pb, rpc

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRET = "0123456789abcdef-of-the-tests"
CONFIG = f"secret: {SECRET}\n{SANDBOX}"
DATA = bytes(range(256)) * 5000  # several parts
WRONG = {"authorization": "Bearer sk-umg-wrong"}


@dataclass(frozen=True)
class Served:
    gateway: Running
    http: str  # of a face in this process, or of one over a socket
    blob: Blob
    session: aiohttp.ClientSession

    @property
    def blobs(self) -> BlobStore:
        assert self.gateway.service.blobs is not None
        return self.gateway.service.blobs

    @property
    def links(self) -> FileLinks:
        return self.gateway.service.links

    def url(self, blob: Blob | None = None, **more: object) -> str:
        link = self.links.url_of(blob or self.blob, **more)  # type: ignore[arg-type]
        return link.replace(self.gateway.url, self.http)


@asynccontextmanager
async def face(made: Running, data: Path) -> AsyncGenerator[str, None]:
    options = Options(None, ANY, Address.parse(made.grpc), data, ("http",))
    async with gateway(options, parse(CONFIG, "test.yaml", {}), {}, None) as state:
        yield f"http://{state.http}"


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["in process", "socket"])
async def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served, None]:  # fmt: skip
    data = tmp_path_factory.mktemp("files")
    async with running(CONFIG, data) as made, aiohttp.ClientSession() as session:
        assert made.service.blobs is not None
        blob = await made.service.blobs.put(DATA, "video/mp4")
        if request.param == "in process":
            yield Served(made, made.url, blob, session)
        else:
            async with face(made, data) as http:
                yield Served(made, http, blob, session)


async def test_a_link_has_the_address_of_the_http_face(served: Served) -> None:
    assert served.links.base_url == served.gateway.url


@pytest.mark.parametrize("headers", [{}, WRONG], ids=["no key", "a wrong key"])
async def test_a_file_is_sent_whole_to_the_holder_of_its_link(served: Served, headers: dict[str, str]) -> None:
    async with served.session.get(served.url(file_name="clip.mp4"), headers=headers) as answer:
        assert (answer.status, await answer.read()) == (200, DATA)
        sent = answer.headers
    rest = int(re.fullmatch(r"private, max-age=(\d+)", sent["Cache-Control"])[1])  # type: ignore[index]
    assert 86_000 < rest <= 86_400
    expected = {
        "Content-Type": "video/mp4",
        "Content-Length": str(len(DATA)),
        "ETag": f'"{served.blob.etag}"',
        "Last-Modified": format_datetime(served.blob.create_time, usegmt=True),
        "Accept-Ranges": "bytes",
        "Content-Disposition": 'inline; filename="clip.mp4"',
        "X-Content-Type-Options": "nosniff",
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    assert {name: sent.get(name) for name in expected} == expected
    assert "x-request-id" in sent


@dataclass(frozen=True)
class Case:
    id: str
    headers: dict[str, str] = field(default_factory=dict)  # `ETAG` and `DATE` stand for the validators of the file
    status: int = 206
    start: int = 0
    end: int = len(DATA)


N = len(DATA)
CASES = [
    Case("the first bytes", {"Range": "bytes=0-9"}, start=0, end=10),
    Case("one byte", {"Range": "bytes=5-5"}, start=5, end=6),
    Case("in the middle", {"Range": "bytes=300000-900000"}, start=300_000, end=900_001),
    Case("to the end", {"Range": "bytes=1000-"}, start=1000),
    Case("all", {"Range": "bytes=0-"}),
    Case("the last bytes", {"Range": "bytes=-10"}, start=N - 10),
    Case("more of the last bytes than there are", {"Range": f"bytes=-{N + 1}"}),
    Case("beyond the end", {"Range": f"bytes={N - 5}-{N + 100}"}, start=N - 5),
    Case("the last byte", {"Range": f"bytes={N - 1}-"}, start=N - 1),
    Case("spaces and capitals", {"Range": "Bytes= 0 - 9"}, start=0, end=10),
    Case("of the same version", {"Range": "bytes=0-9", "If-Range": '"ETAG"'}, start=0, end=10),
    Case("of the same date", {"Range": "bytes=0-9", "If-Range": "DATE"}, start=0, end=10),
    Case("of another version", {"Range": "bytes=0-9", "If-Range": '"other"'}, status=200),
    Case("of a weak version", {"Range": "bytes=0-9", "If-Range": 'W/"ETAG"'}, status=200),
    Case("of another date", {"Range": "bytes=0-9", "If-Range": "Wed, 21 Oct 2015 07:28:00 GMT"}, status=200),
    Case("several ranges", {"Range": "bytes=0-9,20-29"}, status=200),
    Case("another unit", {"Range": "items=0-9"}, status=200),
    Case("no range", {"Range": "bytes=x-y"}, status=200),
    Case("backwards", {"Range": "bytes=9-0"}, status=200),
    Case("nothing", {"Range": "bytes=-"}, status=200),
    Case("after the end", {"Range": f"bytes={N}-"}, status=416),
    Case("far after the end", {"Range": "bytes=99999999999-999999999999"}, status=416),
    Case("none of the last bytes", {"Range": "bytes=-0"}, status=416),
    Case("known", {"If-None-Match": '"ETAG"'}, status=304),
    Case("known among others", {"If-None-Match": '"a", W/"ETAG"'}, status=304),
    Case("any known", {"If-None-Match": "*"}, status=304),
    Case("known, with a range", {"If-None-Match": '"ETAG"', "Range": "bytes=0-9"}, status=304),
    Case("another known", {"If-None-Match": '"other"'}, status=200),
    Case("known since its date", {"If-Modified-Since": "DATE"}, status=304),
    Case("known before its date", {"If-Modified-Since": "Wed, 21 Oct 2015 07:28:00 GMT"}, status=200),
    Case("another known, although since its date", {"If-None-Match": '"x"', "If-Modified-Since": "DATE"}, status=200),
]  # fmt: skip


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_part_or_a_condition(served: Served, case: Case, method: str) -> None:
    date = format_datetime(served.blob.create_time, usegmt=True)
    headers = {
        name: value.replace("ETAG", served.blob.etag).replace("DATE", date) for name, value in case.headers.items()
    }
    async with served.session.request(method, served.url(), headers=headers) as answer:
        status, body, sent = answer.status, await answer.read(), answer.headers
    if method == "HEAD":  # a range is defined for GET alone
        assert (status, body) == (304 if case.status == 304 else 200, b"")
        assert sent.get("Content-Length") == (None if status == 304 else str(N)), dict(sent)
        return
    assert status == case.status
    if case.status in {200, 206}:
        assert body == DATA[case.start : case.end]
        assert sent["Content-Length"] == str(len(body))
    ranges = {206: f"bytes {case.start}-{case.end - 1}/{N}", 416: f"bytes */{N}"}
    assert sent.get("Content-Range") == ranges.get(status)
    if case.status == 416:
        assert "begins after the end" in json.loads(body)["error"]["message"]
    else:
        assert sent["ETag"] == f'"{served.blob.etag}"'


async def test_an_empty_file_is_sent(served: Served) -> None:
    empty = await served.blobs.put(b"", "application/octet-stream")
    async with served.session.get(served.url(empty)) as answer:
        assert (answer.status, await answer.read(), answer.headers["Content-Length"]) == (200, b"", "0")
    async with served.session.get(served.url(empty), headers={"Range": "bytes=0-"}) as answer:
        assert (answer.status, answer.headers["Content-Range"]) == (416, "bytes */0")


async def test_every_wrong_link_has_the_same_answer(served: Served) -> None:
    removed = await served.blobs.put(b"x", "image/png")
    await served.blobs.delete(removed.id)
    token = served.url().rpartition("/")[2]
    other = FileLinks("another-secret-of-16", 86_400)
    urls = {
        "removed": served.url(removed),
        "expired": served.url(seconds=-1),
        "forged": served.url().replace(token, other.token_of(served.blob)),
        "cut": served.url()[:-3],
        "none": served.url().replace(token, "x"),
        "long": served.url().replace(token, "x" * 5000),
    }
    answers = set[str]()
    for url in urls.values():
        for headers in ({}, {"Range": "bytes=0-9"}, {"If-None-Match": "*"}):
            async with served.session.get(url, headers=headers) as answer:
                assert (answer.status, answer.content_type) == (404, "application/json")
                assert "cache-control" not in {name.lower() for name in answer.headers}
                answers.add(re.sub(r'"req_[^"]*"', "", await answer.text()))
            async with served.session.head(url, headers=headers) as answer:
                assert (answer.status, await answer.read()) == (404, b"")
    assert len(answers) == 1


async def test_only_reading_is_possible(served: Served) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        async with served.session.request(method, served.url()) as answer:
            assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
    async with served.session.get(served.url() + "/x") as answer:
        assert answer.status == 404


async def test_a_token_is_in_no_log_and_in_no_metric(served: Served) -> None:
    token = served.url().rpartition("/")[2]
    forged = token[:-4] + "AAAA"
    with capture_logs() as lines:
        for path in (token, forged, f"{token}/x"):
            async with served.session.get(f"{served.http}/files/{path}", headers={"Range": "bytes=0-"}) as answer:
                await answer.read()
    assert lines
    assert not [line for line in lines if token[:-4] in str(line)]
    async with served.session.get(f"{served.gateway.url}/metrics") as answer:
        assert token[:-4] not in await answer.text()


async def test_bytes_are_counted(served: Served) -> None:
    async def counted() -> dict[str, float]:
        async with served.session.get(f"{served.gateway.url}/metrics") as answer:
            families = text_string_to_metric_families(await answer.text())
        return {
            sample.labels.get("direction", "level"): sample.value
            for family in families
            for sample in family.samples
            if sample.name in {"umg_blob_bytes_total", "umg_blob_store_bytes"}
        }

    before = await counted()
    blob = await served.blobs.put(b"x" * 1000, "image/png")
    async with served.session.get(served.url(blob), headers={"Range": "bytes=0-99"}) as answer:
        await answer.read()
    after = await counted()
    assert {name: after[name] - before.get(name, 0) for name in after} == {"stored": 1000, "served": 100, "level": 1000}


@pytest.fixture(scope="module", params=["in process", "socket"])
def channel_kind(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    return kind


@asynccontextmanager
async def files_stub(served: Served, kind: str) -> AsyncGenerator["rpc.FileServiceAsyncStub", None]:
    if kind == "in process":
        yield rpc.FileServiceStub(served.gateway.service.channel())
    else:
        async with grpc.aio.insecure_channel(served.gateway.grpc) as channel:
            yield rpc.FileServiceStub(channel)


async def test_a_file_is_read_over_grpc_without_a_key(served: Served, channel_kind: str) -> None:
    async with files_stub(served, channel_kind) as stub:
        token = served.links.token_of(served.blob)
        for metadata in ((), (("authorization", "Bearer sk-umg-wrong"),)):
            file = (await stub.GetFile(pb.GetFileRequest(token=token), metadata=metadata)).file
            assert (file.mime_type, file.size_bytes, file.etag) == ("video/mp4", N, served.blob.etag)
            assert file.file_name == f"{served.blob.etag[:16]}.mp4"
            assert file.expire_time.ToDatetime() - file.create_time.ToDatetime() == timedelta(days=1)
            messages = [
                each async for each in stub.DownloadFile(pb.DownloadFileRequest(token=token), metadata=metadata)
            ]
            head = messages[0].head
            assert (head.mime_type, head.total_bytes, head.offset, head.length_bytes) == ("video/mp4", N, 0, N)
            assert b"".join(message.chunk for message in messages[1:]) == DATA
            assert all(0 < len(message.chunk) <= 1 << 20 for message in messages[1:])


RANGES = [
    (pb.ByteRange(), 0, N),
    (pb.ByteRange(offset=0), 0, N),
    (pb.ByteRange(offset=10, limit=5), 10, 15),
    (pb.ByteRange(offset=N - 3, limit=50), N - 3, N),
    (pb.ByteRange(limit=7), N - 7, N),
    (pb.ByteRange(limit=2 * N), 0, N),
    (pb.ByteRange(offset=0, limit=0), 0, 0),
    (pb.ByteRange(offset=N), None, None),
]


@pytest.mark.parametrize(("wanted", "start", "end"), RANGES, ids=str)
async def test_a_part_is_read_over_grpc(served: Served, wanted: pb.ByteRange, start: int | None, end: int | None) -> None:  # fmt: skip
    async with files_stub(served, "socket") as stub:
        request = pb.DownloadFileRequest(token=served.links.token_of(served.blob), range=wanted)
        if start is None:
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await anext(aiter(stub.DownloadFile(request)))
            error = from_rpc(caught.value)
            assert (caught.value.code(), error.metadata["total_bytes"]) == (grpc.StatusCode.OUT_OF_RANGE, str(N))
            return
        messages = [each async for each in stub.DownloadFile(request)]
        assert (messages[0].head.offset, messages[0].head.length_bytes) == (start, (end or 0) - start)
        assert b"".join(message.chunk for message in messages[1:]) == DATA[start:end]


@pytest.mark.parametrize("token", ["", "x", "x" * 3_000_000])
async def test_a_wrong_token_is_refused_over_grpc(served: Served, channel_kind: str, token: str) -> None:
    async with files_stub(served, channel_kind) as stub:
        for call in (
            stub.GetFile(pb.GetFileRequest(token=token)),
            anext(aiter(stub.DownloadFile(pb.DownloadFileRequest(token=token)))),
        ):
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await call
            refused = {"": "MISSING_FIELD", "x": "OBJECT_NOT_FOUND"}.get(token)
            too_large = "BODY_TOO_LARGE" if channel_kind == "socket" else "OBJECT_NOT_FOUND"
            assert from_rpc(caught.value).name == (refused or too_large)


async def test_a_reader_that_leaves_ends_the_call(served: Served) -> None:
    big = await served.blobs.put(os.urandom(30 << 20), "video/mp4")
    with capture_logs() as lines:
        async with served.session.get(served.url(big)) as answer:
            await answer.content.readexactly(1000)
            answer.close()
        async with asyncio.timeout(60):
            while not (
                ended := [line["outcome"] for line in lines if line.get("method") == "FileService/DownloadFile"]
            ):
                await (await served.session.get(f"{served.http}/healthz")).read()
    assert ended == ["CANCELLED"]


async def test_200_mb_are_served_in_little_memory(served: Served) -> None:
    part = os.urandom(1 << 20)

    async def stream() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield part

    big = await served.blobs.put_stream(stream(), "video/mp4")
    for warm_up in (True, False):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        headers = {"Range": "bytes=0-9999999"} if warm_up else {}
        async with served.session.get(served.url(big), headers=headers) as answer:
            received = sum([len(chunk) async for chunk in answer.content.iter_any()])
    assert received == 200 << 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 << 10
    await served.blobs.delete(big.id)


async def test_no_file_is_stored_or_served_where_the_operator_disables_it(tmp_path: Path, served: Served) -> None:
    async with running(f"blobs: {{enabled: false}}\n{CONFIG}", tmp_path) as made:
        assert made.service.blobs is None
        async with served.session.get(made.url + "/files/" + served.links.token_of(served.blob)) as answer:
            assert answer.status == 404
    assert not (tmp_path / "blobs").exists()


async def test_replicas_with_one_secret_and_one_bucket_serve_the_links_of_each_other(served: Served, tmp_path: Path) -> None:  # fmt: skip
    async with running(f"public_url: https://gateway.example/ai\n{CONFIG}", tmp_path) as other:
        (tmp_path / "blobs").mkdir(exist_ok=True)
        assert other.service.blobs is not None
        blob = await other.service.blobs.put(b"hello", "image/png")
        url = other.service.links.url_of(blob)
        assert url.startswith("https://gateway.example/ai/files/")
        async with served.session.get(other.url + "/files/" + url.rpartition("/")[2]) as answer:
            assert await answer.read() == b"hello"
