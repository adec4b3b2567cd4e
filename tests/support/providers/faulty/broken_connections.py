"""Faults of the faulty provider: connections that break, and connections that stall."""

from collections.abc import Awaitable, Callable, Mapping

from tests.support.providers.faulty.answer_encoding import END, head_of, send_content, send_pieces, send_right, written
from tests.support.providers.faulty.provider_connection import Link
from tests.support.providers.faulty.right_answers import Reply

Do = Callable[[Link, Reply], Awaitable[None]]
Then = Callable[[Link], Awaitable[None]]
"""Action at a place of a response."""


async def _resets(link: Link) -> None:
    link.reset()


async def _closes(link: Link) -> None:
    link.close()


async def _stalls(link: Link) -> None:
    await link.stall()


# --- places: the part of the response that is sent before the action


async def _nothing(link: Link, reply: Reply) -> None:
    pass


async def _half_a_head(link: Link, reply: Reply) -> None:
    head = head_of(reply)
    await link.send(head[: len(head) // 2])


async def _head(link: Link, reply: Reply) -> None:
    await link.send(head_of(reply))


async def _no_content(link: Link, reply: Reply) -> None:
    await _head(link, reply)
    if reply.streamed:
        await send_pieces(link, reply, reply.pieces[: reply.content_at])
    else:
        await link.send(reply.body[: len(reply.body) // 2])


async def _some_content(link: Link, reply: Reply) -> None:
    await _head(link, reply)
    await send_content(link, reply, reply.pieces[: reply.content_at + 2])


async def _half_an_event(link: Link, reply: Reply) -> None:
    await _some_content(link, reply)
    event = reply.pieces[reply.content_at + 2]
    await link.send(written(reply, event[: len(event) // 2]))


async def _all_but_the_end(link: Link, reply: Reply) -> None:
    await _head(link, reply)
    await send_content(link, reply, reply.pieces[: reply.finish_at])


def _at(place: Do, then: Then) -> Do:
    async def do(link: Link, reply: Reply) -> None:
        await place(link, reply)
        await then(link)

    return do


def _named(verb: str, then: Then, places: Mapping[str, Do]) -> dict[str, Do]:
    return {f"{verb}-{name}": _at(place, then) for name, place in places.items()}


EARLY: Mapping[str, Do] = {"at-once": _nothing, "in-head": _half_a_head, "after-head": _head, "in-body": _no_content}
LATE: Mapping[str, Do] = {"mid": _some_content, "in-event": _half_an_event, "before-end": _all_but_the_end}

CONNECTIONS = _named("reset", _resets, EARLY) | _named("close", _closes, EARLY)
MID_STREAM = _named("reset", _resets, LATE) | _named("close", _closes, LATE)


# --- one byte a second


async def _drips(link: Link, reply: Reply) -> None:
    await link.send_slowly(head_of(reply), 1)


async def _body_drips(link: Link, reply: Reply) -> None:
    await link.send(head_of(reply))
    for byte in reply.body:
        await link.send_slowly(written(reply, bytes([byte])), 1 / (6 if reply.streamed else 1))


async def _rest_drips(link: Link, reply: Reply) -> None:
    await _some_content(link, reply)
    for byte in b"".join(reply.pieces[reply.content_at + 2 :]):
        await link.send_slowly(written(reply, bytes([byte])), 1 / 6)  # of which 5 frame the sixth


STALLS = _named("stalls", _stalls, EARLY) | {"drips": _drips, "body-drips": _body_drips}
MID_STREAM_STALLS = _named("stalls", _stalls, LATE) | {"rest-drips": _rest_drips}


# --- bodies that end before the response does


async def _ends_without_end(link: Link, reply: Reply) -> None:
    await _all_but_the_end(link, reply)
    await link.send(END)


async def _ends_in_event(link: Link, reply: Reply) -> None:
    await _half_an_event(link, reply)
    await link.send(END)


async def _ends_mid(link: Link, reply: Reply) -> None:
    await _some_content(link, reply)
    await link.send(END)


async def _ends_without_marker(link: Link, reply: Reply) -> None:
    await _head(link, reply)
    await send_content(link, reply, reply.pieces[: reply.end_at])
    await link.send(END)


MARKERS: dict[str, Do] = {"no-end-marker": _ends_without_marker}
MID_STREAM |= {"ends-mid": _ends_mid, "ends-in-event": _ends_in_event, "ends-without-end": _ends_without_end}


# --- connections that are reused


async def _stale(link: Link, reply: Reply) -> None:
    if link.used:
        link.reset()
    else:
        await send_right(link, reply)


async def _closes_pooled(link: Link, reply: Reply) -> None:
    await send_right(link, reply)
    link.close()


async def _announces_close(link: Link, reply: Reply) -> None:
    await send_right(link, reply, "Connection: close")
    link.close()


POOLED: dict[str, Do] = {"stale": _stale, "closes-kept": _closes_pooled, "announces-close": _announces_close}
