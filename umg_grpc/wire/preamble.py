"""How a stream begins before it says anything: what may be held back, so that another channel can still be asked."""

import re
from collections.abc import Callable, Mapping

import msgspec
from msgspec import Raw

from umg_grpc.wire import sse
from umg_grpc.wire.json import ABSENT

NOTHING = frozenset({b"", b"null", b'""', b"[]", b"{}"})

Preamble = Callable[[bytes], bool]


def preamble(says_nothing: Callable[[bytes], bool], mark: re.Pattern[bytes]) -> Preamble:
    """Whether whole frames, as a provider sent them, have nothing of the answer in them, by a function that says it of
    the data of one event. What cannot be read is taken for a part of the answer, and, unread, what has the `mark`: most
    streams say something in their first read.
    """

    def is_preamble(frames: bytes) -> bool:
        if mark.search(frames):
            return False
        try:
            for event in sse.split(frames):
                if event.data is not None and not says_nothing(event.data):
                    return False
        except (ValueError, RecursionError):
            return False
        return True

    return is_preamble


def is_nothing(value: Raw) -> bool:
    """Whether a member is absent, or holds nothing."""
    return value is ABSENT or bytes(value) in NOTHING


def are_nothing(members: Mapping[str, Raw], known: frozenset[str] = frozenset()) -> bool:
    """Whether an object has no members but known ones and such as hold nothing."""
    for name, value in members.items():  # noqa: SIM110  `all` over a generator takes many times as long
        if name not in known and bytes(value) not in NOTHING:
            return False
    return True


MEMBERS = msgspec.json.Decoder(dict[str, Raw])
