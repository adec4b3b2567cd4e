"""Guarded fetches from real servers, which the allow list permits."""

import asyncio
import gzip
import resource
import socket
import ssl
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import trustme

from tests.support.providers.raw import HELLO, LINE, HandleConnection, Link, Provider, answering, provider, sized, stall
from tests.support.refused_urls import numeric, resolve
from tests.unit.upstream.test_proxies import Relay, trust
from umg_grpc.base.egress_rules import EgressRules
from umg_grpc.base.errors import UmgError
from umg_grpc.base.host_list_entries import parse_place, place_of
from umg_grpc.base.proxy_rules import NO_PROXIES, environment_proxies
from umg_grpc.upstream.caller_url_dns import MAX_LOOKUPS
from umg_grpc.upstream.caller_url_fetch import (
    CHECKED_BYTES,
    FAILED_OUTCOME,
    FETCHED_OUTCOME,
    REFUSED_OUTCOME,
    Fetcher,
    Lookup,
    ProviderRoute,
)
from umg_grpc.upstream.http1.dns_cache import Addresses
from umg_grpc.v1 import pb

PNG = sized(b"\x89PNG" + b"x" * 996, LINE + b"Content-Type: Image/PNG; charset=x\r\n")


def place(made: Provider) -> str:
    return made.url.removeprefix("http://").removeprefix("https://").removesuffix("/v1/x")


@asynccontextmanager
async def fetching(
    *allow: str, lookup: Lookup = resolve, count: Callable[[str], None] = lambda _: None, **limits: float
) -> AsyncGenerator[Fetcher, None]:
    rules = EgressRules(tuple(parse_place(text) for text in allow), **limits)  # type: ignore[arg-type]
    async with Fetcher.opened(rules, lookup=lookup, count=count) as fetcher:
        yield fetcher


async def failure(fetcher: Fetcher, url: str, field: str | None = "image", **more: object) -> UmgError:
    with pytest.raises(UmgError) as caught:
        await fetcher.fetch(url, field=field, **more)  # type: ignore[arg-type]
    return caught.value


async def test_a_file_is_fetched_with_nothing_of_the_caller() -> None:
    seen: list[tuple[bytes, bytes]] = []
    outcomes: list[str] = []

    async def handle(link: Link) -> None:
        seen.append(await link.request())
        await link.send(PNG)

    async with provider(handle) as made, fetching(place(made), count=outcomes.append) as fetcher:
        found = await fetcher.fetch(f"{made.url}?a=1", field="image")
    assert (len(found.body), found.content_type, outcomes) == (1000, "image/png", [FETCHED_OUTCOME])
    assert seen[0][0].decode().split("\r\n") == [
        "GET /v1/x?a=1 HTTP/1.1",
        f"Host: {place(made)}",
        "Accept: */*",
        "Accept-Encoding: identity",
        "User-Agent: unified-model-gateway",
        "",
        "",
    ]


async def test_a_name_is_looked_up_once_and_called_at_the_checked_address_only() -> None:
    """Let the DNS change between two look-ups: the second address is the gateway's own network."""
    async with provider(answering(HELLO)) as allowed, provider(answering(sized(b"secret")), host="127.0.0.2") as inner:
        port = int(allowed.url.split(":")[2].split("/")[0])
        answers = [numeric("127.0.0.1", port), numeric("127.0.0.2", int(inner.url.split(":")[2].split("/")[0]))]
        names: list[str] = []

        async def rebinding(name: str, port: int) -> Addresses:
            names.append(name)
            return answers[len(names) - 1]

        async with fetching("127.0.0.1", lookup=rebinding) as fetcher:
            url = f"http://rebinding.example.com:{port}/x"
            assert (await fetcher.fetch(url, field="image")).body == b"hello"
            error = await failure(fetcher, url)
        assert (names, len(inner.links)) == (["rebinding.example.com"] * 2, 0)
        assert error.message == "`image`: the URL has the scheme http; use https"


@dataclass(frozen=True)
class Redirect:
    id: str
    location: str
    problem: str = ""
    status: bytes = b"302 Found"


REDIRECTS = [
    Redirect("to another path", "/y"),
    Redirect("relative", "y?z=1"),
    Redirect("to itself with another name", "http://HOST/y", status=b"308 Permanent Redirect"),
    Redirect("to loopback", "http://127.0.0.1:1/x", "redirects to a URL that has the scheme http"),
    Redirect("to https loopback", "https://127.0.0.1/x", "redirects to a URL that names a host that is not"),
    Redirect("to metadata", "https://169.254.169.254/latest/meta-data/", "redirects to a URL that names a host"),
    Redirect("to a name of a private address", "https://to-private.example.com/x", "redirects to a URL that names a host"),
    Redirect("to a decimal address", "https://2130706433/", "redirects to a URL that has an address in an unusual form"),
    Redirect("to credentials", "https://a:b@public.example.com/", "redirects to a URL that has a user name"),
    Redirect("without a scheme to loopback", "//127.0.0.1/x", "redirects to a URL that has the scheme http"),
    Redirect("to a file", "file:///etc/passwd", "redirects to a URL that has a scheme"),
    Redirect("to a file of a host", "file://a.example.com/etc/passwd", "redirects to a URL that has a scheme"),
    Redirect("with a backslash", "https:\\\\127.0.0.1\\", "redirects to a URL that has spaces"),
    Redirect("to no valid URL", "https://[::1/x", "redirects to no valid URL"),
]  # fmt: skip


@pytest.mark.parametrize("case", REDIRECTS, ids=lambda case: case.id)
async def test_a_redirect_is_checked_as_the_url_is(case: Redirect) -> None:
    outcomes: list[str] = []

    async def handle(link: Link) -> None:
        head, _ = await link.request()
        if b"/y" in head:
            await link.send(HELLO)
        else:
            location = case.location.replace("HOST", place(made)).encode()
            await link.send(b"HTTP/1.1 %b\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % (case.status, location))
            await handle(link)

    async with provider(handle) as made, fetching(place(made), count=outcomes.append) as fetcher:
        if not case.problem:
            assert (await fetcher.fetch(made.url, field="image")).body == b"hello"
            assert len(made.links) == 1
        else:
            error = await failure(fetcher, made.url)
            assert (error.name, error.metadata) == ("INVALID_FIELD", {"field": "image"})
            assert case.problem in error.message
            assert outcomes == [FAILED_OUTCOME if "no valid URL" in case.problem else REFUSED_OUTCOME]


async def test_redirects_end() -> None:
    redirect = b"HTTP/1.1 301 Go\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"
    async with provider(answering(redirect)) as made, fetching(place(made)) as fetcher:
        error = await failure(fetcher, made.url)
    assert error.message == "`image`: the file at the URL could not be fetched: its server redirects more than 3 times"


async def test_a_redirect_from_https_to_http_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    authority = trustme.CA()
    theirs = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("localhost").configure_cert(theirs)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    async with provider(answering(HELLO)) as plain:
        redirect = b"HTTP/1.1 302 Go\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % plain.url.encode()
        async with (
            provider(answering(redirect), tls=theirs) as secure,
            fetching("localhost", "127.0.0.1", lookup=local) as fetcher,
        ):
            error = await failure(fetcher, secure.url)
            assert error.message == "`image`: the URL redirects from https to http"
            assert not plain.links
    async with provider(answering(HELLO), tls=theirs) as secure, fetching("localhost", lookup=local) as fetcher:
        assert (await fetcher.fetch(secure.url, field="image")).body == b"hello"
    async with provider(answering(HELLO), tls=theirs) as secure, fetching("127.0.0.1") as fetcher:
        error = await failure(fetcher, secure.url.replace("localhost", "127.0.0.1"))  # not in the certificate
        assert error.message.endswith("its server could not be reached")


async def local(name: str, port: int) -> Addresses:
    return numeric("127.0.0.1", port)


@dataclass(frozen=True)
class Failing:
    id: str
    handle: HandleConnection
    problem: str
    timeout: float = 60.0  # so that a busy machine is no slow server


CHUNKS = LINE + b"Transfer-Encoding: chunked\r\n\r\n"
GZIP = LINE + b"Content-Encoding: gzip\r\n"


async def drip(link: Link) -> None:
    await link.request()
    await link.send(CHUNKS)
    while True:
        await link.send(b"1\r\nx\r\n")
        await asyncio.sleep(0.02)


FAILING = [
    Failing("not found", answering(sized(b"secret", b"HTTP/1.1 404 No\r\n")), "its server answered with status 404"),
    Failing("forbidden", answering(sized(b"secret", b"HTTP/1.1 403 No\r\n")), "its server answered with status 403"),
    Failing("a part", answering(sized(b"x", b"HTTP/1.1 206 Part\r\n")), "its server answered with status 206"),
    Failing("not modified", answering(b"HTTP/1.1 304 Same\r\n\r\n"), "its server answered with status 304"),
    Failing("its error", answering(sized(b"secret", b"HTTP/1.1 500 No\r\n")), "its server answered with status 500"),
    Failing("cut", answering(LINE + b"Content-Length: 9\r\n\r\nhello", then="close"), "the connection to its server broke"),
    Failing("reset", answering(then="reset"), "the connection to its server broke"),
    Failing("no HTTP", answering(b"220 smtp.example.com ESMTP\r\n", then="close"), "the connection to its server broke"),
    Failing("a huge head", answering(LINE + b"X: y\r\n" * 20000, then="close"), "its server's response is not valid"),
    Failing("a length over the limit", answering(LINE + b"Content-Length: 1048577\r\n\r\n", then="wait"), "it is larger than 1 MiB"),
    Failing("a body over the limit", answering(CHUNKS + b"100001\r\n" + b"x" * 0x100001 + b"\r\n", then="wait"), "it is larger than 1 MiB"),
    Failing("a body that grows", answering(sized(gzip.compress(b"x" * 0x100001), GZIP)), "it is larger than 1 MiB"),
    Failing("a body without end", answering(CHUNKS, *[b"20000\r\n" + b"x" * 0x20000 + b"\r\n"] * 9, then="wait"), "it is larger than 1 MiB"),
    Failing("no response", stall, "its server was too slow", 0.5),
    Failing("a response that drips", drip, "its server was too slow", 0.5),
]  # fmt: skip


@pytest.mark.parametrize("case", FAILING, ids=lambda case: case.id)
async def test_a_server_that_fails_is_the_callers_fault(case: Failing) -> None:
    outcomes: list[str] = []
    async with (
        asyncio.timeout(30),
        provider(case.handle) as made,
        fetching(place(made), count=outcomes.append, max_bytes=1 << 20, timeout=case.timeout) as fetcher,
    ):
        error = await failure(fetcher, made.url)
        assert error.message == f"`image`: the file at the URL could not be fetched: {case.problem}"
        assert (error.reason, error.failure, outcomes) == (pb.ERROR_REASON_INVALID_FIELD, None, [FAILED_OUTCOME])
        assert (await failure(fetcher, made.url, None)).name == "UPSTREAM_FAILED"


async def test_a_host_that_cannot_be_found_or_reached_is_the_callers_fault() -> None:
    async with provider(stall) as closed:
        pass

    async def never(name: str, port: int) -> Addresses:
        await asyncio.get_running_loop().create_future()
        raise AssertionError("not reached")

    async with fetching(place(closed)) as fetcher:
        assert (await failure(fetcher, closed.url)).message.endswith("its server could not be reached")
        assert (await failure(fetcher, "https://unknown.example.com/")).message.endswith("its host could not be found")
    async with fetching(lookup=never, timeout=0.1) as fetcher:
        assert (await failure(fetcher, "https://slow.example.com/")).message.endswith("its host could not be found")


async def test_the_look_up_of_the_system_finds_a_name() -> None:
    async with provider(answering(HELLO)) as made, Fetcher.opened(EgressRules((parse_place("localhost"),))) as fetcher:
        url = made.url.replace("127.0.0.1", "localhost")
        assert (await fetcher.fetch(url, field="image")).body == b"hello"
        assert "not on the public internet" in (await failure(fetcher, "https://127.0.0.1/")).message
    async with Fetcher.opened(EgressRules()) as fetcher:
        assert "could not be found" in (await failure(fetcher, "https://unknown.example.invalid.example/")).message


async def test_look_ups_that_hang_are_bounded_and_delay_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the servers of a name not answer: the call ends in time, and its thread is not used twice."""
    go_on, began = threading.Event(), list[str]()

    def hang(name: str, *_: object, **__: object) -> object:
        began.append(name)
        go_on.wait(30)
        raise socket.gaierror(socket.EAI_AGAIN, "no response")

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    async with Fetcher.opened(EgressRules(timeout=0.2)) as fetcher:
        urls = [f"https://{n}.example.com/" for n in range(MAX_LOOKUPS + 4)]
        errors = await asyncio.gather(*(failure(fetcher, url) for url in urls))
        assert {error.message.rpartition(": ")[2] for error in errors} == {"its host could not be found"}
        assert len(began) == MAX_LOOKUPS
        assert await asyncio.to_thread(lambda: 5) == 5
        go_on.set()
        async with asyncio.timeout(60):
            while len(began) == MAX_LOOKUPS:
                await failure(fetcher, "https://later.example.com/")
    assert began[-1] == "later.example.com."


@pytest.mark.parametrize("size", [0, 1, CHECKED_BYTES, 100_000])
async def test_the_beginning_is_checked_before_the_rest_is_read(size: int) -> None:
    beginnings: list[bytes] = []
    content = bytes(range(256)) * (size // 256 + 1)
    async with provider(answering(sized(content[:size]))) as made, fetching(place(made)) as fetcher:
        found = await fetcher.fetch(made.url, field="image", check=beginnings.append)
        assert found.body == content[:size]
        assert [found.body.startswith(each) for each in beginnings] == [True]
        assert len(beginnings[0]) >= min(size, CHECKED_BYTES)


async def test_a_file_of_a_wrong_type_is_not_read_to_its_end() -> None:
    def check(beginning: bytes) -> None:
        raise UmgError(pb.ERROR_REASON_INVALID_FIELD, "`image`: no image", field="image")

    endless = LINE + b"Content-Length: 50000000\r\n\r\n<!doctype html>" + b"x" * 100
    async with provider(answering(endless, then="wait")) as made, fetching(place(made)) as fetcher:
        assert (await failure(fetcher, made.url, check=check)).message == "`image`: no image"


async def test_a_call_has_the_tighter_of_the_limits() -> None:
    async with provider(answering(sized(b"x" * 1000))) as made, fetching(place(made), max_bytes=1000) as fetcher:
        assert len((await fetcher.fetch(made.url, field="image", max_bytes=2000)).body) == 1000
        assert "larger" in (await failure(fetcher, made.url, max_bytes=999)).message
        fetcher.configure(EgressRules((parse_place(place(made)),), max_bytes=500))
        assert "larger" in (await failure(fetcher, made.url)).message
        fetcher.configure(EgressRules())
        assert "has the scheme http" in (await failure(fetcher, made.url)).message
    async with provider(stall) as made, fetching(place(made)) as fetcher:
        assert "too slow" in (await failure(fetcher, made.url, seconds=0.1)).message


async def test_a_part_of_a_file_is_streamed() -> None:
    seen: list[bytes] = []

    async def handle(link: Link) -> None:
        seen.append((await link.request())[0])
        await link.send(sized(b"llo", b"HTTP/1.1 206 Part\r\nContent-Range: bytes 2-4/5\r\n"))

    async with (
        provider(handle) as made,
        fetching(place(made)) as fetcher,
        fetcher.open(made.url, field=None, headers={"Range": "bytes=2-", "If-Range": '"a"'}) as download,
    ):
        assert (download.status, download.headers["content-range"]) == (206, "bytes 2-4/5")
        async with aclosing(download.chunks()) as chunks:
            assert b"".join([chunk async for chunk in chunks]) == b"llo"
    assert b'\r\nRange: bytes=2-\r\nIf-Range: "a"\r\n' in seen[0]


async def test_a_download_of_200_mb_takes_little_memory_and_follows_its_reader() -> None:
    size, part, sent = 200 << 20, b"x" * (1 << 20), 0

    async def handle(link: Link) -> None:
        nonlocal sent
        await link.request()
        await link.send(LINE + b"Content-Length: %d\r\n\r\n" % size)
        for _ in range(size // len(part)):
            await link.send(part)
            sent += len(part)
        await link.left()

    async with provider(handle) as made, fetching(place(made), max_bytes=1) as fetcher:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        async with fetcher.open(made.url, field=None) as download, aclosing(download.chunks()) as chunks:
            received = 0
            async for chunk in chunks:
                received += len(chunk)
                assert sent - received < 16 << 20  # the rest is in the buffers of the system
        assert received == size
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 << 10


async def test_a_reader_that_stops_closes_the_connection() -> None:
    endless = CHUNKS + b"400\r\n" + b"x" * 1024 + b"\r\n"
    async with provider(answering(endless, then="wait")) as made, fetching(place(made)) as fetcher:
        async with fetcher.open(made.url, field=None) as download, aclosing(download.chunks()) as chunks:
            assert await anext(chunks)
        await asyncio.wait_for(made.links[0].writer.wait_closed(), 60)


@pytest.mark.parametrize("status", [200, 204, 302, 404, 500])
async def test_a_body_is_posted_and_every_status_is_an_answer(status: int) -> None:
    seen: list[tuple[bytes, bytes]] = []

    async def handle(link: Link) -> None:
        seen.append(await link.request())
        await link.send(b"HTTP/1.1 %d X\r\nLocation: /y\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n" % status)

    async with provider(handle) as made, fetching(place(made)) as fetcher:
        headers = {"Content-Type": "application/json", "webhook-id": "1"}
        answer = await fetcher.post(made.url, field="callback_url", body=b'{"a":1}', headers=headers)
    [(head, body)] = seen
    assert (answer.status, answer.headers["retry-after"], body) == (status, "7", b'{"a":1}')
    assert head.startswith(b"POST /v1/x HTTP/1.1\r\n")
    assert b"\r\nwebhook-id: 1\r\n" in head


async def test_a_receiver_that_sends_a_body_without_end_is_answered_enough() -> None:
    async with provider(answering(CHUNKS + b"1\r\nx\r\n", then="wait")) as made, fetching(place(made)) as fetcher:
        answer = await fetcher.post(made.url, field="callback_url", body=b"{}", headers={})
        assert answer.status == 200


# --- files of providers


async def test_a_file_at_the_own_place_of_a_provider_is_fetched_with_the_authorities_of_the_channel() -> None:
    theirs, ours = trust()
    async with provider(answering(HELLO), tls=theirs) as made, Fetcher.opened(EgressRules()) as fetcher:
        refused = await failure(fetcher, made.url, field=None)
        unknown = await failure(fetcher, made.url, field=None, route=ProviderRoute(place_of(made.url)))
        found = await fetcher.fetch(made.url, field=None, route=ProviderRoute(place_of(made.url), own_tls=ours))
    assert "its URL has the port" in refused.message
    assert "its server could not be reached" in unknown.message
    assert found.body == b"hello"


async def test_a_file_at_another_place_is_checked_as_urls_of_callers_are() -> None:
    async with provider(answering(HELLO)) as other:
        moved = LINE.replace(b"200 OK", b"302 Found") + f"Location: {other.url}\r\nContent-Length: 0\r\n\r\n".encode()
        async with provider(answering(moved)) as made, fetching() as fetcher:
            error = await failure(fetcher, made.url, field=None, route=ProviderRoute(place_of(made.url)))
    assert "its URL redirects to a URL that has the scheme http" in error.message
    assert not other.links


async def test_files_are_fetched_through_the_proxy_of_the_channel() -> None:
    theirs, ours = trust()
    relay = Relay()
    async with (
        provider(answering(HELLO), tls=theirs) as made,
        provider(relay.handle) as proxy,
        fetching("localhost") as fetcher,
    ):
        route = ProviderRoute(None, proxy=proxy.url.removesuffix("/v1/x"), tls=ours)
        assert (await fetcher.fetch(made.url, field=None, route=route)).body == b"hello"
    assert relay.heads[0].startswith(f"CONNECT {place(made)} HTTP/1.1".encode())


async def test_a_proxy_of_the_rules_serves_all_places_but_this_machine_and_those_without_one() -> None:
    targets: list[str] = []

    async def handle(link: Link) -> None:
        while True:
            head, _ = await link.request()
            targets.append(head.decode().split(" ")[1])
            await link.send(HELLO)

    async with provider(handle) as made, provider(Relay().handle) as proxy:
        port = int(made.url.split(":")[2].split("/")[0])
        name = socket.gethostname()  # a name of loopback that no rule recognizes
        url, through = f"http://{name}:{port}/v1/x", proxy.url.removesuffix("/v1/x")
        rules = EgressRules((parse_place(name), parse_place("localhost")))
        async with Fetcher.opened(rules) as fetcher:
            fetcher.configure(replace(rules, proxies=NO_PROXIES.with_proxy(through, "egress.proxy")))
            await fetcher.fetch(url, field="image")
            assert (await fetcher.post(url, field="callback_url", body=b"{}", headers={})).status == 200
            refused = await failure(fetcher, "https://10.0.0.1/x")
            assert targets == [url, url]
            await fetcher.fetch(url.replace(name, "localhost"), field="image")
            await fetcher.fetch(url, field=None, route=ProviderRoute(place_of(url)))
            await fetcher.fetch(url, field=None, route=ProviderRoute(is_direct=True))
            direct = environment_proxies({"NO_PROXY": f"{name}:{port}"})
            fetcher.configure(replace(rules, proxies=direct.with_proxy(through, "egress.proxy")))
            await fetcher.fetch(url, field="image")
    assert targets[2:] == ["/v1/x"] * 4
    assert "names a host that is not on the public internet" in refused.message


async def test_a_proxy_to_the_own_place_of_a_provider_serves_no_other_place() -> None:
    relay = Relay()
    rules = EgressRules((parse_place("localhost"),))
    async with (
        provider(answering(HELLO)) as made,
        provider(relay.handle) as proxy,
        Fetcher.opened(rules) as fetcher,
    ):
        route = ProviderRoute(place_of(made.url), proxy.url.removesuffix("/v1/x"))
        assert (await fetcher.fetch(made.url, field=None, route=route)).body == b"hello"
        other = made.url.replace("127.0.0.1", "localhost")
        assert (await fetcher.fetch(other, field=None, route=route)).body == b"hello"
    assert [head.split(b" ")[1] for head in relay.heads] == [made.url.encode()]


async def test_a_private_place_is_not_reached_through_the_proxy_of_a_channel() -> None:
    relay = Relay()
    async with provider(relay.handle) as proxy, fetching() as fetcher:
        route = ProviderRoute(None, proxy=proxy.url.removesuffix("/v1/x"))
        error = await failure(fetcher, "https://10.0.0.1/x", field=None, route=route)
    assert "names a host that is not on the public internet" in error.message
    assert not relay.heads
