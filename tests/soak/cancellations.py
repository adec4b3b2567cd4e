"""Callers that leave at any moment: while they send, while they wait, while they are answered."""

import asyncio
import contextlib
import random
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import grpc

from tests.soak import questions
from tests.soak.callers import OWN, Called, Callers, Outcome, callers
from tests.soak.gateway import KEY, Figures, Gateway, gateway
from tests.soak.provider import Provider, Told, provider
from tests.soak.questions import GRPC, QUESTIONS, Question, nonce
from tests.soak.report import Report, Verdict
from tests.soak.soak import files_kept

MODELS = {"fast": "none", "waits": "none+300", "stalls": "stalls-in-body,stalls-mid,rest-drips"}
"""Model -> how its provider behaves: where it stalls, only a caller who leaves ends the call."""
AT_ONCE = 200
LONGEST_SECONDS = 0.5
DEMANDED_SECONDS = 1.0
PATIENCE_SECONDS = 15.0

CHANNEL = """
  - name: {name}
    protocols: [{protocols}]
    base_url: {url}
    api_key: sk-provider
    models: [{name}]
"""
PROTOCOLS = "chat, responses, messages, native, embeddings, native_embeddings, rerank"


def config(running: Provider) -> str:
    """Of the gateway: it would wait for a minute."""
    channels = (
        CHANNEL.format(name=name, protocols=PROTOCOLS, url=running.url(order)) for name, order in MODELS.items()
    )
    return "\n".join(["log: {level: warning, format: json}", "channels:", *channels])


async def leave_http(target: Gateway, question: Question, model: str, chance: random.Random) -> None:
    """Connects, sends all or a part of the request, reads what comes, and is gone."""
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
        await asyncio.wait_for(reader.read(), chance.uniform(0, LONGEST_SECONDS))
    if chance.random() < 0.5:  # with a reset, as a process does that is killed with something left to read
        opened: socket.socket = writer.get_extra_info("socket")
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
    else:
        writer.close()


async def leave_grpc(target: Gateway, question: Question, model: str, chance: random.Random) -> None:
    """Calls, and cancels the call or closes the connection."""
    async with grpc.aio.insecure_channel(target.grpc, options=OWN) as channel:
        calling = Callers(None, channel, KEY)
        with contextlib.suppress(TimeoutError):
            seconds = chance.uniform(0.02, LONGEST_SECONDS)
            await asyncio.wait_for(calling.call(question, model, nonce(chance)), seconds)


@dataclass(frozen=True)
class Left:
    """What was seen of it."""

    count: int
    during: int  # most calls under way at the provider
    seconds: float  # from the last that left until the provider had no call under way
    told: Told
    before: Figures
    after: Figures
    answers: Sequence[Called]  # to those that came afterwards


async def left(count: int, directory: Path, seed: int = 0) -> Left:
    """The run."""
    async with provider() as running, gateway(config(running), directory) as target:
        await _ask_all(target)
        before = await target.until(lambda figures: figures.clients == 0, PATIENCE_SECONDS)
        async with running.watched() as watch:
            await _all_leave(target, count, seed)
        began = time.perf_counter()
        told = await running.told()
        while told.under_way and time.perf_counter() < began + PATIENCE_SECONDS:
            await asyncio.sleep(0.02)
            told = await running.told()
        seconds = time.perf_counter() - began
        answers = await _ask_all(target)
        after = await target.until(lambda figures: figures.clients == 0, PATIENCE_SECONDS)
        return Left(count, watch.most, seconds, told, before, after, answers)


async def _all_leave(target: Gateway, count: int, seed: int) -> None:
    room = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        chance = random.Random(f"{seed} {number}")
        question, model = chance.choice(QUESTIONS), chance.choice(tuple(MODELS))
        async with room:
            await (leave_grpc if question.over == GRPC else leave_http)(target, question, model, chance)

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(one(number))


async def _ask_all(target: Gateway) -> Sequence[Called]:
    async with callers(target.url, target.grpc, KEY) as calling:
        return [await calling.call(question, "fast", f"after{at}") for at, question in enumerate(QUESTIONS)]


def report(seen: Left) -> Report:
    """The figures, and whether they are as they should be."""
    abandoned = sum(count.left for count in seen.told.orders.values())
    wrong = [called for called in seen.answers if called.outcome is not Outcome.RIGHT]
    rows = [
        Verdict("callers that left", str(seen.count)),
        Verdict("calls under way at the provider meanwhile", f"up to {seen.during}"),
        Verdict("calls that the provider was told to stop", str(abandoned), "some", abandoned > 0),
        Verdict("calls still under way there", str(seen.told.under_way), "0", seen.told.under_way == 0),
        Verdict(
            "until there was none",
            f"{seen.seconds:.2f} s",
            f"<= {DEMANDED_SECONDS:g} s",
            seen.seconds <= DEMANDED_SECONDS,
            timed=True,
        ),
        Verdict("sockets of callers afterwards", str(seen.after.clients), "0", seen.after.clients == 0),
        files_kept(seen.before, seen.after),
        Verdict(
            "tasks", f"{seen.before.tasks} -> {seen.after.tasks}", "no more", seen.after.tasks <= seen.before.tasks
        ),
        Verdict("wrong answers afterwards", str(len(wrong)), "0", not wrong),
    ]
    return Report("Callers that leave", rows, [f"{called.question.id}: {called.what}" for called in wrong])
