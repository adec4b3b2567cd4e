"""Faults of the faulty provider: rejected calls, by a status, inside a successful answer, or in a stream."""

from collections.abc import Awaitable, Callable
from email.utils import formatdate

from tests.support.providers.common import compact
from tests.support.providers.faulty.answer_encoding import (
    END,
    head,
    head_of,
    send_body,
    send_content,
    send_events,
    send_pieces,
)
from tests.support.providers.faulty.provider_connection import Link
from tests.support.providers.faulty.right_answers import WORD, Reply

Do = Callable[[Link, Reply], Awaitable[None]]
HTML = f"<!DOCTYPE html><html><head><title>Error</title></head><body><h1>the {WORD}</h1></body></html>".encode()
STATUSES = (
    *(400, 401, 402, 403, 404, 405, 407, 408, 409, 410, 413, 415, 422, 425, 429, 451),
    *(500, 501, 502, 503, 504, 520, 522, 524, 529),
)


def by_status(status: int) -> dict[str, Do]:
    """Return faults for a status: an error with the format's body, with no body, and with an HTML page, as from a proxy
    in front of the provider.
    """

    async def json(link: Link, reply: Reply) -> None:
        await send_body(link, reply.refusal(status), status)

    async def empty(link: Link, reply: Reply) -> None:
        await send_body(link, b"", status, "")

    async def page(link: Link, reply: Reply) -> None:
        await send_body(link, HTML, status, "text/html; charset=utf-8")

    return {f"status-{status}": json, f"status-{status}-empty": empty, f"status-{status}-html": page}


def _limited(status: int, *more: str) -> Do:
    async def do(link: Link, reply: Reply) -> None:
        await send_body(link, reply.refusal(status), status, "application/json", *more)

    return do


DATED = (f"Date: {formatdate(1760000000, usegmt=True)}", f"Retry-After: {formatdate(1760000009, usegmt=True)}")
LIMITS: dict[str, tuple[Do, int, str]] = {
    "limit-seconds": (_limited(429, "Retry-After: 7"), 429, "7"),
    "limit-ms": (_limited(429, "retry-after-ms: 1500", "Retry-After: 9"), 429, "2"),
    "limit-date": (_limited(429, *DATED), 429, "9"),
    "limit-nonsense": (_limited(429, "Retry-After: soon"), 429, "1"),
    "overloaded-seconds": (_limited(503, "Retry-After: 7"), 503, "7"),
    "overloaded-ms": (_limited(529, "retry-after-ms: 1500"), 503, "2"),
    "overloaded-date": (_limited(503, *DATED), 503, "9"),
}
"""Name -> (answer, status of the caller, seconds of the caller's `Retry-After`)."""


async def _out_of_credit(link: Link, reply: Reply) -> None:
    await send_body(link, compact(reply.error(429, "You exceeded your credit balance.")).encode(), 429)


QUOTA: dict[str, Do] = {"out-of-credit": _out_of_credit}


async def _too_long(link: Link, reply: Reply) -> None:
    body = reply.error(400, "This model's maximum context length is 8192 tokens, your messages have 9000.")
    await send_body(link, compact(body).encode(), 400)


CONTEXT: dict[str, Do] = {"context-too-long": _too_long}


async def _refused_content(link: Link, reply: Reply) -> None:
    body = reply.error(400, "Content rejected by content moderation.")
    await send_body(link, compact(body).encode(), 400)


CONTENT: dict[str, Do] = {"content-refused": _refused_content}


def _redirect(status: int) -> Do:
    async def do(link: Link, reply: Reply) -> None:
        # to a healthy path: a client that followed it would be served
        await send_body(link, b"", status, "", "Location: /none/v1/chat/completions")

    return do


REDIRECTS = {f"redirect-{status}": _redirect(status) for status in (301, 302, 303, 307, 308)}


# --- with status 200


async def _error_inside(link: Link, reply: Reply) -> None:
    await send_body(link, reply.refusal(500))


async def _page_inside(link: Link, reply: Reply) -> None:
    await send_body(link, HTML, 200, "text/html")


async def _page_as_events(link: Link, reply: Reply) -> None:
    await send_body(link, HTML, 200, reply.content_type)


async def _empty(link: Link, reply: Reply) -> None:
    await send_body(link, b"", 200, reply.content_type)


async def _no_content(link: Link, reply: Reply) -> None:
    await link.send(b"HTTP/1.1 204 No Content\r\n\r\n")


async def _accepted(link: Link, reply: Reply) -> None:
    await send_body(link, b'{"status":"queued"}', 202)


async def _switches(link: Link, reply: Reply) -> None:
    await link.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
    await link.stall()


INSIDE: dict[str, Do] = {
    "error-in-200": _error_inside,
    "html-200": _page_inside,
    "html-as-answer": _page_as_events,
    "empty-200": _empty,
    "status-204": _no_content,
    "status-202": _accepted,
    "status-101": _switches,
}


# --- as an event


def _failing_at(place: Callable[[Reply], int], *, stays_open: bool = False) -> Do:
    async def do(link: Link, reply: Reply) -> None:
        at = place(reply)
        await link.send(head_of(reply))
        await send_content(link, reply, reply.pieces[:at])
        await send_pieces(link, reply, [reply.failed(at)])
        if stays_open:
            await link.stall()
        await link.send(END)

    return do


async def _limit_first(link: Link, reply: Reply) -> None:
    await send_events(link, reply, [reply.limited])


LIMITS_FIRST: dict[str, Do] = {"limit-first": _limit_first}


async def _refusal_first(link: Link, reply: Reply) -> None:
    await send_events(link, reply, [b"data: " + reply.refusal(500) + b"\n\n"])


async def _refusal_as_stream(link: Link, reply: Reply) -> None:
    await link.send(head(200, reply.content_type, len(reply.refusal(500))) + reply.refusal(500))


EVENTS_FIRST: dict[str, Do] = {
    "error-first": _failing_at(lambda _: 0),
    "error-before-content": _failing_at(lambda reply: reply.content_at),
    "refusal-first": _refusal_first,
    "refusal-as-stream": _refusal_as_stream,
}
EVENTS_MID: dict[str, Do] = {
    "error-mid": _failing_at(lambda reply: reply.content_at + 2),
    "error-mid-stays-open": _failing_at(lambda reply: reply.content_at + 2, stays_open=True),
    "error-before-end": _failing_at(lambda reply: reply.finish_at),
}
