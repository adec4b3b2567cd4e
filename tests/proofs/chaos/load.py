"""Load of the proof: mixed calls of five keys through the proxy, and video tasks."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp

from tests.proofs.chaos.provider import CountingProvider
from tests.proofs.ledger.calls import KINDS, Call, Made, Outcome, is_complete, over_grpc, random_call, request_of
from umg_grpc.access.key_settings import KeyFields

CALL_SECONDS = 90.0
"""Longest wait for a response: a call that takes longer has failed."""
PAUSE_SECONDS = 0.1
REFUSED_PAUSE_SECONDS = 0.5
RPM, CONCURRENCY = 90, 3
LARGE, SMALL = 10**12, 120_000
"""Budgets in micro-credits: one that is never used up, and one for some 40 calls."""
LIMITS = (b"insufficient_quota", b"rate_limit", b"RESOURCE_EXHAUSTED", b"concurrency")


@dataclass(frozen=True)
class KeyKind:
    name: str
    callers: int
    fields: KeyFields = field(default_factory=KeyFields)


KEYS = (
    KeyKind("without limits", 4),
    KeyKind("large budget", 4, {"budget_micro_credits": LARGE}),
    KeyKind("small budget", 2, {"budget_micro_credits": SMALL}),
    KeyKind("calls a minute", 2, {"requests_per_minute": RPM}),
    KeyKind("calls at once", 5, {"concurrent_requests": CONCURRENCY}),
)
SMALL_BUDGET, PER_MINUTE, AT_ONCE = 2, 3, 4
CALLER_KEYS = [key for key, kind in enumerate(KEYS) for _ in range(kind.callers)]


@dataclass(frozen=True)
class Ended:
    made: Made
    began: float
    """Time by the monotonic clock."""
    seconds: float
    limited: bool
    """Whether a limit of its key refused it, as it has to."""
    answer: str
    """Status and beginning of the response."""

    @property
    def has_failed(self) -> bool:
        return self.made.outcome is not Outcome.ANSWERED and not self.limited


@dataclass
class Load:
    http: str
    grpc_address: str
    secrets: Sequence[str]
    """Secrets of `KEYS` in their order."""
    provider: CountingProvider
    seed: int
    ended: list[Ended] = field(default_factory=list)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def calling(self) -> AsyncGenerator[None, None]:
        """Call until the context ends, which waits for the calls in flight."""
        self.provider.keys = dict(enumerate(CALLER_KEYS))
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as group:
            for number in range(len(CALLER_KEYS)):
                group.create_task(self._repeat(number, session))
            try:
                yield
            finally:
                self.stopped.set()

    async def _repeat(self, number: int, session: aiohttp.ClientSession) -> None:
        chance, count, key = random.Random(f"{self.seed} {number}"), 0, CALLER_KEYS[number]
        while not self.stopped.is_set():
            call = random_call(chance, f"call-{number}-{count}", kinds=KINDS, leaving=0.0)
            ended = await self._call(call, key, session)
            self.ended.append(ended)
            count += 1
            await asyncio.sleep(REFUSED_PAUSE_SECONDS if ended.limited else PAUSE_SECONDS)

    async def _call(self, call: Call, key: int, session: aiohttp.ClientSession) -> Ended:
        began, limited, answer = time.monotonic(), False, ""
        try:
            async with asyncio.timeout(CALL_SECONDS):
                if call.kind == "grpc":
                    outcome = await over_grpc(call, self.grpc_address, self.secrets[key])
                    limited = outcome is Outcome.REFUSED and key >= SMALL_BUDGET
                else:
                    outcome, limited, answer = await self._over_http(call, self.secrets[key], session)
        except TimeoutError:
            outcome, answer = Outcome.CALLER_LEFT, "no response"
        except aiohttp.ClientError as error:
            outcome, answer = Outcome.BROKEN, repr(error)
        return Ended(Made(call, key, outcome), began, time.monotonic() - began, limited, answer)

    async def _over_http(self, call: Call, secret: str, session: aiohttp.ClientSession) -> tuple[Outcome, bool, str]:
        """Make the call. Return its outcome, whether a limit refused it, and the response."""
        path, body = request_of(call)
        headers = {"authorization": f"Bearer {secret}", "x-request-id": call.call_id}
        async with session.post(self.http + path, json=body, headers=headers) as answer:
            content = await answer.read()
            text = f"{answer.status} {content[:300]!r}"
            if answer.status == 200:
                return Outcome.ANSWERED if is_complete(call, content.decode()) else Outcome.FAILED, False, text
            if not is_of_gateway(answer.headers):
                return Outcome.BROKEN, False, text
            limited = answer.status in {402, 403, 429} and any(word in content for word in LIMITS)
            return Outcome.REFUSED, limited, text


def is_of_gateway(headers: Mapping[str, str]) -> bool:
    """Return whether a response is the gateway's, and not an error of the proxy."""
    return "x-request-id" in headers
