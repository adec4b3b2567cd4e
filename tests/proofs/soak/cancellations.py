"""Callers that leave at any moment: while they send, while they wait, while they receive."""

import asyncio
import contextlib
import random
import socket
import statistics
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import grpc

from tests.proofs.soak import questions
from tests.proofs.soak.callers import OWN, Callers, CallResult, Outcome, callers
from tests.proofs.soak.gateway import KEY, Figures, Gateway, gateway
from tests.proofs.soak.provider import Provider, ProviderCounts, provider
from tests.proofs.soak.questions import GRPC, QUESTIONS, Question, nonce
from tests.proofs.soak.report import Report, Verdict
from tests.proofs.soak.soak import as_before, files_open

MODELS = {"fast": "none", "waits": "none+300", "stalls": "stalls-in-body,stalls-mid,rest-drips"}
"""Model -> behaviour of its provider. Where the provider stalls, only a caller that leaves ends the call."""
AT_ONCE = 200
LONGEST_SECONDS = 0.5
"""Longest time before a caller leaves, on a host where a response takes at most a hundredth of it; more on a slower one.
"""
DEMANDED_SECONDS = 1.0
PATIENCE_SECONDS = 60.0

CHANNEL = """
  - name: {name}
    protocols: [{protocols}]
    base_url: {url}
    api_key: sk-provider
    models: [{name}]
"""
PROTOCOLS = "chat, responses, messages, native, embeddings, native_embeddings, rerank"


def config(running: Provider) -> str:
    """Return the config of the gateway, whose timeouts are a minute."""
    channels = (
        CHANNEL.format(name=name, protocols=PROTOCOLS, url=running.url(order)) for name, order in MODELS.items()
    )
    return "\n".join(["log: {level: warning, format: json}", "channels:", *channels])


async def leave_http(
    target: Gateway, question: Question, model: str, chance: random.Random, longest_seconds: float
) -> None:
    """Connect, send all or a part of the request, read for a while, and leave."""
    place = urlsplit(target.url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    body = questions.body(question, model, questions.prompt(nonce(chance)))
    head = (
        f"POST {questions.path(question, model)} HTTP/1.1\r\nhost: {place.netloc}\r\ncontent-type: application/json\r\n"
        f"authorization: Bearer {KEY}\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    sent = head.encode() + body
    if chance.random() < 0.2:
        sent = sent[: chance.randrange(len(sent))]
    writer.write(sent)
    with contextlib.suppress(TimeoutError, ConnectionError):
        await asyncio.wait_for(reader.read(), chance.uniform(0, longest_seconds))
    if chance.random() < 0.5:  # with a reset, as from a process that is killed with unread data
        opened: socket.socket = writer.get_extra_info("socket")
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
    else:
        writer.close()


async def leave_grpc(
    target: Gateway, question: Question, model: str, chance: random.Random, longest_seconds: float
) -> None:
    """Call, and leave by cancelling the call or closing the connection."""
    async with grpc.aio.insecure_channel(target.grpc, options=OWN) as channel:
        calling = Callers(None, channel, KEY)
        with contextlib.suppress(TimeoutError):
            seconds = chance.uniform(0.02, longest_seconds)
            await asyncio.wait_for(calling.call(question, model, nonce(chance)), seconds)


@dataclass(frozen=True)
class CancelledCalls:
    count: int
    during: int  # most calls in flight at the provider
    seconds: float  # from the last caller that left until no call was in flight at the provider
    counts: ProviderCounts
    before: Figures
    after: Figures
    answers: Sequence[CallResult]  # to the calls that were made afterwards


async def run_cancellations(count: int, directory: Path, seed: int = 0) -> CancelledCalls:
    async with provider() as running, gateway(config(running), directory) as target:
        usual = statistics.median(called.seconds for called in await _call_all(target))
        before = await target.until(lambda figures: figures.clients == 0, PATIENCE_SECONDS)
        async with running.watched() as watch:
            await _all_leave(target, count, seed, max(LONGEST_SECONDS, 100 * usual))
        began = time.perf_counter()
        counts = await running.counts()
        while counts.under_way and time.perf_counter() < began + PATIENCE_SECONDS:
            await asyncio.sleep(0.02)
            counts = await running.counts()
        seconds = time.perf_counter() - began
        answers = await _call_all(target)
        after = await target.until(as_before(before), PATIENCE_SECONDS)
        return CancelledCalls(count, watch.most, seconds, counts, before, after, answers)


async def _all_leave(target: Gateway, count: int, seed: int, longest_seconds: float) -> None:
    room = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        chance = random.Random(f"{seed} {number}")
        question, model = chance.choice(QUESTIONS), chance.choice(tuple(MODELS))
        async with room:
            leave = leave_grpc if question.over == GRPC else leave_http
            await leave(target, question, model, chance, longest_seconds)

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(one(number))


async def _call_all(target: Gateway) -> Sequence[CallResult]:
    async with callers(target.url, target.grpc, KEY) as calling:
        return [
            await calling.call_with_retries(question, "fast", f"after{at}") for at, question in enumerate(QUESTIONS)
        ]


def report(seen: CancelledCalls) -> Report:
    abandoned = sum(count.left for count in seen.counts.orders.values())
    wrong = [called for called in seen.answers if called.outcome is not Outcome.RIGHT]
    rows = [
        Verdict("callers that left", str(seen.count)),
        Verdict("calls under way at the provider meanwhile", f"up to {seen.during}"),
        Verdict("calls that the provider was told to stop", str(abandoned), "some", abandoned > 0),
        Verdict("calls still under way there", str(seen.counts.under_way), "0", seen.counts.under_way == 0),
        Verdict(
            "until there was none",
            f"{seen.seconds:.2f} s",
            f"<= {DEMANDED_SECONDS:g} s",
            seen.seconds <= DEMANDED_SECONDS,
            timed=True,
        ),
        Verdict("sockets of callers afterwards", str(seen.after.clients), "0", seen.after.clients == 0),
        files_open(seen.before, seen.after),
        Verdict(
            "tasks", f"{seen.before.tasks} -> {seen.after.tasks}", "no more", seen.after.tasks <= seen.before.tasks
        ),
        Verdict("wrong answers afterwards", str(len(wrong)), "0", not wrong),
    ]
    return Report("Callers that leave", rows, [f"{called.question.id}: {called.detail}" for called in wrong])
