"""Provider that speaks every upstream format and misbehaves on command: a real server on a free port.

    async with faulty_upstream() as upstream:
        upstream.url("reset-mid")          # a channel's `base_url`: every call that goes there fails in this way
        upstream.url("any@20+50")          # a fifth of the calls, each by one fault or another; 50 ms before a response
        upstream.count("reset-mid").calls  # its calls; also `.under_way`, `.left` (callers that did not wait)
        upstream.open                      # connections

`fault_plans` describes the orders, `faults` the faults. A right answer contains the nonce of the prompt
(`answers.words`, and for vectors and scores `tests.support.providers.vectors`). Any key is valid, and requests are not
checked: the providers of `tests.support.providers` do that.

As a process: `python -m tests.support.providers.faulty` prints its address and serves until its standard input ends.
There `GET /-/counts` returns `{"open": N, "orders": {ORDER: {"calls": N, "under_way": N, "left": N}}}`, and
`struck(ORDER, NONCE, streamed=...)` of the package returns the fault that strikes a call.
"""

import asyncio
import dataclasses
import json
import socket
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field

from tests.support.providers.faulty.answer_encoding import send_body
from tests.support.providers.faulty.fault_plans import parsed, struck
from tests.support.providers.faulty.provider_connection import Link, Request
from tests.support.providers.faulty.right_answers import reply

REFUSES, TAKES_NONE = "refuses", "takes-no-connection"
"""Orders that no server can carry out: an address that refuses connections, and one that never accepts them."""


@dataclass
class Count:
    """Counts of the calls with one order (see `fault_plans`)."""

    calls: int = 0
    under_way: int = 0
    left: int = 0  # callers that left before the end of their answer


@dataclass
class Upstream:
    root: str = ""
    seed: int = 0
    under_way: int = 0  # requests in flight
    counts: defaultdict[str, Count] = field(default_factory=lambda: defaultdict(Count))
    links: set[Link] = field(default_factory=set)
    addresses: dict[str, str] = field(default_factory=dict)  # of the orders that no server can carry out
    _idle: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._idle.set()

    def url(self, order: str = "none") -> str:
        """Return the `base_url` of a channel whose calls get the faults of an order. It is the same for all formats."""
        if order in self.addresses:
            return f"{self.addresses[order]}/v1"
        assert parsed(order) is not None, f"no such order: {order}"
        return f"{self.root}/{order}/v1"

    def count(self, order: str) -> Count:
        return self.counts[order]

    @property
    def open(self) -> int:
        return len(self.links)

    async def still_at_work(self, seconds: float = 60) -> dict[str, int]:
        """Wait until no request is in flight. Return the number of requests that remain after the time limit, by order.
        To be called when all callers have disconnected, which a server notices some iterations of its event loop later.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        return {order: count.under_way for order, count in self.counts.items() if count.under_way}

    def link(self) -> Link:
        made = Link(self._serve, self.links.discard)
        self.links.add(made)
        return made

    async def _serve(self, link: Link, request: Request) -> None:
        _, text, rest = request.target.split("/", 2) if request.target.count("/") > 1 else ("", "", "")
        if text == "-":
            await self._send_counts(link)
            return
        order, answer = parsed(text), reply(rest.partition("?")[0], request.body)
        if order is None or answer is None:
            await send_body(link, f"no such order or path: {request.target}".encode(), 404, "text/plain")
            return
        count = self.counts[text]
        count.calls += 1
        count.under_way += 1
        self.under_way += 1
        self._idle.clear()
        try:
            if order.seconds:
                await asyncio.sleep(order.seconds)
            await struck(order, answer.nonce, streamed=answer.streamed, seed=self.seed).do(link, answer)
        except (asyncio.CancelledError, ConnectionError):
            count.left += 1
            raise
        finally:
            count.under_way -= 1
            self.under_way -= 1
            if not self.under_way:
                self._idle.set()

    async def _send_counts(self, link: Link) -> None:
        counts = {order: dataclasses.asdict(count) for order, count in self.counts.items()}
        await send_body(link, json.dumps({"open": self.open - 1, "orders": counts}).encode())


@asynccontextmanager
async def faulty_upstream(port: int = 0, seed: int = 0) -> AsyncGenerator[Upstream, None]:
    upstream = Upstream(seed=seed)
    with ExitStack() as stack:
        refusing = stack.enter_context(socket.socket())
        refusing.bind(("127.0.0.1", 0))  # bound, so that no other process listens there
        silent = stack.enter_context(_silent())
        upstream.addresses = {REFUSES: _address(refusing), TAKES_NONE: _address(silent)}
        server = await asyncio.get_running_loop().create_server(upstream.link, "127.0.0.1", port, backlog=4096)
        upstream.root = _address(server.sockets[0])
        try:
            yield upstream
        finally:
            server.close()
            for link in list(upstream.links):
                link.reset()
            await server.wait_closed()


@contextmanager
def _silent() -> Iterator[socket.socket]:
    """Yield a socket that listens and accepts no connection, as a host behind a firewall: its accept queue is full."""
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(8):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        yield listening


def _address(of: socket.socket) -> str:
    host, port = of.getsockname()[:2]
    return f"http://{host}:{port}"
