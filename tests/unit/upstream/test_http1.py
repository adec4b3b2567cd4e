"""Complete answers over connections of our own: valid ones, invalid ones, and the requests for them."""

import asyncio
import gzip
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from tests.support.providers.raw import (
    HELLO,
    LINE,
    Link,
    answering,
    chunked,
    on_each_loop,
    outgoing,
    provider,
    refused,
    sized,
)
from umg_grpc.base.errors import UmgError
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.connection import PART_BYTES
from umg_grpc.upstream.http1.decompression import STEP_BYTES, inflate
from umg_grpc.upstream.http1.request import request_to
from umg_grpc.upstream.http1.response import (
    MAX_ERROR_BODY_BYTES,
    MAX_RESPONSE_BYTES,
    Fetched,
    ReceivedResponse,
    ResponseParser,
)


@dataclass(frozen=True)
class Answered:
    id: str
    sent: bytes
    body: bytes = b"hello"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    pooled: bool = True  # the connection is reused
    ends: bool = False  # the response ends with the connection


def deflated(body: bytes) -> bytes:
    made = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return made.compress(body) + made.flush()


LONG = b"x" * (MAX_ERROR_BODY_BYTES + 1)
GZIP = LINE + b"Content-Encoding: gzip\r\n"
DEFLATE = LINE + b"Content-Encoding: deflate\r\n"
SORRY = b"HTTP/1.1 500 Oh\r\n"

ANSWERS = [
    Answered("with a length", HELLO),
    Answered("in chunks", chunked()),
    Answered("in chunks, with trailers", chunked()[:-2] + b"x-a: 2\r\n\r\n", headers={"transfer-encoding": "chunked"}),
    Answered("until the connection ends", LINE + b"\r\nhello", pooled=False, ends=True),
    Answered("encoded until the connection ends", LINE + b"Transfer-Encoding: x\r\n\r\nhello", pooled=False, ends=True),
    Answered("empty until the connection ends", LINE + b"\r\n", body=b"", pooled=False, ends=True),
    Answered("after a hint", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + HELLO),
    Answered("of no length", LINE + b"Content-Length: 0\r\n\r\n", body=b""),
    Answered("204", b"HTTP/1.1 204 No Content\r\n\r\n", status=204, body=b""),
    Answered("304", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", status=304, body=b""),
    Answered("no reason", b"HTTP/1.1 503\r\nContent-Length: 5\r\n\r\nhello", status=503),
    Answered("a redirect", b"HTTP/1.1 307 Go\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", status=307, body=b""),
    Answered("names in any case", sized(b"hello", LINE + b"X-A: 1\r\nRETRY-AFTER: 7\r\n"), headers={"x-a": "1", "Retry-After": "7"}),
    Answered("a name twice", sized(b"hello", LINE + b"X-A: 1\r\nx-a: 2\r\n"), headers={"x-a": "1"}),
    Answered("spaces around a value", sized(b"hello", LINE + b"X-A: \t 1 \t\r\n"), headers={"x-a": "1"}),
    Answered("a value beyond ASCII", sized(b"hello", LINE + "X-A: ü\r\n".encode()), headers={"x-a": "ü"}),
    Answered("a head of 60 KiB", sized(b"hello", LINE + b"X-A: 1\r\n" + b"".join(b"x-%d: %b\r\n" % (i, b"y" * 4000) for i in range(15)))),
    Answered("it closes", sized(b"hello", LINE + b"Connection: close\r\n"), pooled=False),
    Answered("HTTP/1.0", sized(b"hello", b"HTTP/1.0 200 OK\r\n"), pooled=False),
    Answered("HTTP/1.0 that keeps", sized(b"hello", b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n")),
    Answered("more than the response", HELLO + b"garbage", pooled=False),
    Answered("two answers", HELLO + HELLO, pooled=False),
    Answered("an offer of another protocol", sized(b"hello", LINE + b"Upgrade: h2\r\nConnection: Upgrade, Keep-Alive\r\n")),
    Answered("another protocol", b"HTTP/1.1 101 Go\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\nxyz", status=101, body=b"", pooled=False),
    Answered("gzip", sized(gzip.compress(b"hello", mtime=0), GZIP)),
    Answered("gzip, twice", sized(gzip.compress(b"he", mtime=0) + gzip.compress(b"llo", mtime=0), GZIP)),
    Answered("gzip in deflate", sized(zlib.compress(gzip.compress(b"hello", mtime=0)), LINE + b"Content-Encoding: gzip, Deflate\r\n")),
    Answered("gzip in deflate, in two headers", sized(zlib.compress(gzip.compress(b"hello", mtime=0)), GZIP + b"Content-Encoding: deflate\r\n")),
    Answered("gzip, empty", sized(b"", GZIP), body=b""),
    Answered("deflate", sized(zlib.compress(b"hello"), DEFLATE)),
    Answered("deflate without its head", sized(deflated(b"hello"), DEFLATE)),
    Answered("an encoding that is none", sized(b"hello", LINE + b"Content-Encoding: identity\r\n")),
    Answered("a long refusal", sized(LONG, SORRY), body=LONG[:-1], status=500, pooled=False),
    Answered("a long refusal, in gzip", sized(gzip.compress(LONG, mtime=0), SORRY + b"Content-Encoding: gzip\r\n"), body=LONG[:-1], status=500),
    Answered("a long refusal without end", SORRY + b"Transfer-Encoding: chunked\r\n\r\nfffff\r\n" + LONG, body=LONG[:-1], status=500, pooled=False),
]  # fmt: skip


@pytest.mark.parametrize("case", ANSWERS, ids=lambda case: case.id)
@on_each_loop
async def test_an_answer_is_read_to_its_end_and_no_further(case: Answered) -> None:
    async with provider(answering(case.sent, then="close" if case.ends else "")) as made:
        async with Client.opened() as client:
            for _ in range(2):
                status, headers, body = await client.fetch(outgoing(made))
                assert (status, body) == (case.status, case.body)
                assert {name: headers.get(name) for name in case.headers} == case.headers
        assert len(made.links) == (1 if case.pooled else 2)


@pytest.mark.parametrize("case", [case for case in ANSWERS if len(case.sent) < 1000], ids=lambda case: case.id)
def test_an_answer_may_be_cut_anywhere(case: Answered) -> None:
    def read(*pieces: bytes) -> Fetched:
        parser = ResponseParser()
        parser.response = response = ReceivedResponse(MAX_RESPONSE_BYTES)
        if not any(parser.feed(piece) for piece in pieces):
            response.close()
        return asyncio.run(inflate(response, MAX_RESPONSE_BYTES))

    cuts = range(len(case.sent) + 1)
    for answer in [
        *(read(case.sent[:at], case.sent[at:]) for at in cuts),
        read(*(case.sent[at : at + 1] for at in cuts)),
    ]:
        assert (answer.status, answer.body) == (case.status, case.body)
        assert {name: answer.headers[name] for name in case.headers} == case.headers


@pytest.mark.parametrize("case", [case for case in ANSWERS if len(case.sent) < 1000], ids=lambda case: case.id)
def test_an_answer_that_ends_early_is_none(case: Answered) -> None:
    """Cut each answer short, also in the head if the body ends with the connection; for an error the head is enough."""
    until_the_end, is_refusal = case.ends and case.body, case.status != 200
    end = case.sent.index(b"\r\n\r\n") + 4 if until_the_end or is_refusal else len(case.sent)
    for at in range(end):
        parser = ResponseParser()
        parser.response = response = ReceivedResponse(MAX_RESPONSE_BYTES)
        if not parser.feed(case.sent[:at]):
            with pytest.raises(UmgError):
                response.close()


# --- invalid answers


@dataclass(frozen=True)
class Failed:
    id: str
    sent: bytes
    reason: str
    then: str = "close"


HEAD = LINE + b"".join(b"x-%d: %b\r\n" % (i, b"y" * 4000) for i in range(17))
FAILED = [
    Failed("nothing", b"", "UPSTREAM_CUT"),
    Failed("a reset", b"", "UPSTREAM_CUT", then="reset"),
    Failed("half a head", HELLO[:12], "UPSTREAM_CUT"),
    Failed("half a body", HELLO[:-2], "UPSTREAM_CUT"),
    Failed("half a body, then a reset", HELLO[:-2], "UPSTREAM_CUT", then="reset"),
    Failed("half a chunk", chunked()[:-14], "UPSTREAM_CUT"),
    Failed("no last chunk", chunked()[:-5], "UPSTREAM_CUT"),
    Failed("until the end, then a reset", LINE + b"\r\nhello", "UPSTREAM_CUT", then="reset"),
    Failed("only a hint", b"HTTP/1.1 100 Continue\r\n\r\n", "UPSTREAM_CUT"),
    Failed("garbage", b"SSH-2.0-OpenSSH_9.6\r\n", "UPSTREAM_CUT", then=""),
    Failed("garbage for a length", LINE + b"Content-Length: x\r\n\r\n", "UPSTREAM_CUT", then=""),
    Failed("two lengths", LINE + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", "UPSTREAM_CUT", then=""),
    Failed("a length and chunks", chunked(LINE + b"Content-Length: 2\r\n"), "UPSTREAM_CUT", then=""),
    Failed("garbage for a chunk", chunked().replace(b"3\r\n", b"z\r\n"), "UPSTREAM_CUT", then=""),
    Failed("a head of 68 KiB", sized(b"hello", HEAD), "UPSTREAM_FAILED", then=""),
    Failed("a head without end", HEAD, "UPSTREAM_FAILED", then=""),
    Failed("hints without end", b"HTTP/1.1 103 Early Hints\r\nx: 123456789\r\n\r\n" * 2000, "UPSTREAM_FAILED", then=""),
]  # fmt: skip
UNDECODABLE = [
    Failed("gzip that is none", sized(b"hello", GZIP), "UPSTREAM_CUT", then=""),
    Failed("half a gzip", sized(gzip.compress(b"hello", mtime=0)[:-9], GZIP), "UPSTREAM_CUT", then=""),
    Failed("brotli", sized(b"hello", LINE + b"Content-Encoding: br\r\n"), "UPSTREAM_CUT", then=""),
]


@pytest.mark.parametrize("case", FAILED, ids=lambda case: case.id)
@on_each_loop
async def test_an_invalid_answer_closes_the_connection_and_reports_the_reason(case: Failed) -> None:
    async with Client.opened() as client, provider(answering(case.sent, then=case.then)) as made:
        for _ in range(2):
            assert await refused(client, outgoing(made)) == (case.reason, {})
        assert len(made.links) == 2


@pytest.mark.parametrize("case", UNDECODABLE, ids=lambda case: case.id)
@on_each_loop
async def test_a_body_that_cannot_be_decoded_is_no_answer(case: Failed) -> None:
    async with provider(answering(case.sent, then=case.then)) as made, Client.opened() as client:
        assert await refused(client, outgoing(made)) == (case.reason, {})


REFUSALS = [
    Answered("half a body", SORRY + b"Content-Length: 9\r\n\r\nhello", ends=True),
    Answered("half a chunk", SORRY + b"Transfer-Encoding: chunked\r\n\r\n9\r\nhello", ends=True),
    Answered("garbage for a chunk", SORRY + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nz\r\n"),
    Answered("a length of more than comes", SORRY + b"Content-Length: 9\r\n\r\nhello"),
    Answered("gzip that is none", sized(b"hello", SORRY + b"Content-Encoding: gzip\r\n"), body=b""),
    Answered("brotli", sized(b"hello", SORRY + b"Content-Encoding: br\r\n"), body=b""),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
@on_each_loop
async def test_of_a_refusal_the_status_is_enough(case: Answered, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send errors with bodies of all kinds: the provider's message matters more than the end of the body."""
    monkeypatch.setattr("umg_grpc.upstream.http1.connection.ERROR_BODY_SECONDS", 0.05)

    handle = answering(case.sent, then="close" if case.ends else "")
    async with provider(handle) as made, Client.opened() as client:
        status, _, body = await client.fetch(outgoing(made))
    assert (status, body) == (500, case.body)


@on_each_loop
async def test_a_body_over_the_limit_fails_also_when_it_was_small_on_its_way() -> None:
    limit = 2 * STEP_BYTES
    fits, long = b"x" * limit, b"x" * (limit + 1)

    for body, sent in (
        (fits, sized(fits)),
        (long, sized(long)),
        (fits, sized(gzip.compress(fits, mtime=0), GZIP)),
        (long, sized(gzip.compress(long, mtime=0), GZIP)),
    ):
        async with provider(answering(sent)) as made, Client.opened() as client:
            call = outgoing(made, max_bytes=limit)
            if body is fits:
                assert (await client.fetch(call)).body == fits
            else:
                assert await refused(client, call) == ("UPSTREAM_FAILED", {})


# --- requests


@on_each_loop
async def test_a_request_is_written_as_it_was_given() -> None:
    seen: list[tuple[bytes, bytes]] = []

    async def handle(link: Link) -> None:
        seen.append(await link.request())
        await link.send(HELLO)

    given = {"X-B": "ü", "Accept": "x/y", "Content-Length": "9", "Connection": "close"}
    async with provider(handle) as made, Client.opened() as client:
        await client.fetch(outgoing(made, b"body", headers=given, url=f"{made.url}/a%2Fb c?q=1"))
    [(head, body)] = seen
    host = made.url.removeprefix("http://").removesuffix("/v1/x")
    assert body == b"body"
    assert head.decode().split("\r\n") == [
        "POST /v1/x/a%2Fb%20c?q=1 HTTP/1.1",
        f"Host: {host}",
        "X-B: ü",
        "Accept: x/y",
        "Accept-Encoding: identity",
        "User-Agent: unified-model-gateway",
        "Content-Length: 4",
        "",
        "",
    ]


HOSTS = [
    ("http://a.example/x", "a.example", "a.example", 80),
    ("https://a.example/x", "a.example", "a.example", 443),
    ("https://a.example:80/x", "a.example:80", "a.example", 80),
    ("http://[::1]:8080/x", "[::1]:8080", "::1", 8080),
    ("https://[::1]/x", "[::1]", "::1", 443),
    ("https://bücher.example/x", "xn--bcher-kva.example", "xn--bcher-kva.example", 443),
]


@pytest.mark.parametrize(("url", "sent", "host", "port"), HOSTS)
def test_the_host_is_named_as_http_wants_it(url: str, sent: str, host: str, port: int) -> None:
    made = request_to(url, {})
    assert (made.origin.server.host, made.origin.server.port) == (host, port)
    assert f"\r\nHost: {sent}\r\n".encode() in made.head


@pytest.mark.parametrize("headers", [{"x": "a\r\nb: c"}, {"x\n": "a"}, {"x": "a\0"}])
def test_a_line_break_in_a_header_is_not_sent(headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="line break"):
        request_to("http://a.example/x", headers)


@pytest.mark.parametrize("size", [0, PART_BYTES, PART_BYTES + 1, 20 << 20])
@on_each_loop
async def test_a_body_of_any_length_arrives(size: int) -> None:
    bodies: list[bytes] = []

    async def handle(link: Link) -> None:
        while True:
            bodies.append((await link.request())[1])
            await link.send(HELLO)

    sent = (b"0123456789" * (size // 10 + 1))[:size]
    async with provider(handle) as made, Client.opened() as client:
        for _ in range(2):
            assert (await client.fetch(outgoing(made, sent))).body == b"hello"
        assert [body == sent for body in bodies] == [True, True]
        assert len(made.links) == 1


@pytest.mark.parametrize("lingers", [True, False], ids=["which stays", "which leaves at once"])
@on_each_loop
async def test_an_answer_before_the_end_of_the_request_is_an_answer(lingers: bool) -> None:
    async def handle(link: Link) -> None:
        await link.request(body=False)
        await link.send(sized(b"too large", b"HTTP/1.1 413 Too Large\r\n"))
        if lingers:
            await link.left()

    async with provider(handle) as made, Client.opened() as client:
        for _ in range(2):
            answer = await client.fetch(outgoing(made, b"x" * (20 << 20)))
            assert (answer.status, answer.body) == (413, b"too large")
        assert len(made.links) == 2
