"""Simulated servers of all habits, on bare connections: the first segment of a path names the habit."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.pairs.chains.habits import Habit
from tests.support.providers.raw import Link, provider

READ_BYTES = 11
"""Bytes of one chunk of a chunked body: few, so that events and characters are cut."""


@dataclass
class Servers:
    """The running servers, and the paths at which they were called."""

    habits: Mapping[str, Habit]
    url: str = ""
    paths: list[str] = field(default_factory=list)

    async def handle(self, link: Link) -> None:
        while True:
            head, _ = await link.request()
            path = head.split(b" ", 2)[1].decode()
            self.paths.append(path)
            habit = self.habits[path.split("/")[1]]
            await link.send(encoded(habit))
            if habit.cut or habit.framing == "close":
                return


def encoded(habit: Habit) -> bytes:
    """Return the bytes of the response, from its status line to its end."""
    data = habit.data
    if habit.framing == "chunked":
        pieces = [data[at : at + READ_BYTES] for at in range(0, len(data), READ_BYTES)]
        data = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
        data += b"" if habit.cut else b"0\r\n\r\n"
    return habit.head + data


@asynccontextmanager
async def serve(habits: Mapping[str, Habit]) -> AsyncGenerator[Servers, None]:
    servers = Servers(habits)
    async with provider(servers.handle) as made:
        servers.url = made.url.removesuffix("/v1/x")
        try:
            yield servers
        finally:
            for link in made.links:
                link.writer.close()
