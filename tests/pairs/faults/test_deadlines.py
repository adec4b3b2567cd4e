"""Deadlines of callers: however long a channel's own deadlines are, the caller is answered within its deadline."""

import asyncio
import json
import time
from pathlib import Path

import aiohttp
import grpc
import pytest

from tests.pairs.faults.gateway import LONG, WAITED_FOR, config
from tests.pairs.faults.table import ALONE, Case, cases
from tests.pairs.table import TEXT_CLIENTS
from tests.proofs.soak import questions
from tests.proofs.soak.questions import HTTP
from tests.proofs.soak.reading import READERS
from tests.support.callers.text_format_clients import bearer
from tests.support.gateways import KEY, running
from tests.support.providers.faulty.faults import Strikes
from tests.support.providers.faulty.server import faulty_upstream
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.v1 import pb, rpc

SECONDS = 0.6
LIMIT = 45.0
"""Seconds within which even a busy machine answers. A call that waits for the channel's own deadline takes 60 s."""


async def over_http(session: aiohttp.ClientSession, url: str, case: Case) -> str:
    """Call over HTTP. Return the problem with the error, "" for nothing."""
    question, prompt = case.question, questions.prompt(case.nonce)
    own = TEXT_CLIENTS[question.format].credentials(KEY) if question.is_text else bearer(KEY)
    headers = {"content-type": "application/json", "x-umg-timeout": f"{SECONDS}s", **own}
    data = questions.body(question, case.model, prompt)
    async with session.post(url + questions.path(question, case.model), data=data, headers=headers) as answer:
        body, reader = await answer.read(), READERS[question.format]
    if answer.status == 504:
        return "" if reader.error(json.loads(body)) else f"{case.id}: {body!r}"
    if answer.status != 200 or not question.stream or not (case.fault.begins or case.strikes is Strikes.AFTER):
        return f"{case.id}: {answer.status} {body!r}"
    assert reader.stream is not None
    received = reader.stream(body)
    return "" if received.error and not received.looks_whole else f"{case.id}: {received}"


async def over_grpc(channel: grpc.aio.Channel, case: Case) -> str:
    """Call over gRPC with its own deadline. Return the problem with the error, "" for nothing."""
    metadata, prompt = (("authorization", f"Bearer {KEY}"),), questions.prompt(case.nonce)
    try:
        if case.question.format == questions.EMBED:
            embedding = questions.embed(case.model, prompt)
            await rpc.EmbeddingServiceStub(channel).Embed(embedding, metadata=metadata, timeout=SECONDS)
        else:
            request = pb.StreamGenerateRequest(request=questions.generate(case.model, prompt))
            stub = rpc.GenerationServiceStub(channel)
            async for _ in stub.StreamGenerate(request, metadata=metadata, timeout=SECONDS):
                pass
    except grpc.aio.AioRpcError as error:
        late = error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        return "" if late else f"{case.id}: {error.code().name} {from_rpc(error)!r}"
    return f"{case.id}: it was answered"


@pytest.mark.parametrize("protocol", ["chat", "messages", "native_embeddings"])
async def test_the_callers_own_deadline_ends_a_call_for_every_fault(protocol: str, tmp_path: Path) -> None:
    table = [
        case for case in cases(protocol, ALONE) if case.fault.name.startswith(WAITED_FOR) and case.fault.status == 504
    ]
    async with faulty_upstream() as upstream:
        async with (
            running(config(upstream, protocol, ALONE, table, short=LONG), tmp_path) as gateway,
            aiohttp.ClientSession() as session,
            grpc.aio.insecure_channel(gateway.grpc) as channel,
        ):

            async def call_case(case: Case) -> str:
                began = time.perf_counter()
                over = over_http(session, gateway.url, case) if case.question.over == HTTP else over_grpc(channel, case)
                problem = await over
                seconds = time.perf_counter() - began
                return problem or (f"{case.id}: took {seconds:.1f} s" if seconds > LIMIT else "")

            found = await asyncio.gather(*map(call_case, table))
        waiting = await upstream.still_at_work()
    assert [problem for problem in found if problem] == []
    assert not waiting, "providers that nobody waits for still work"
