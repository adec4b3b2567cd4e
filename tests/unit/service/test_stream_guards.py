"""Guards of streamed responses: they read the text in windows, and let it pass, change it or end it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc

from tests.support.gateways import KEY, Running, running
from tests.support.guards import GuardServers, guard_servers
from umg_grpc.v1 import pb, rpc

SIMULATED = """
channels:
  - {name: simulated, protocols: [sandbox], models: [m, plain, refused], pace: 0}
guards:
"""
REMOTE = """
  - {{name: pass, kind: grpc, target: '{target}', models: [m], on: [response], timeout: 60,
     stream: {{window: 9, hold_back: 4}}}}
"""
REFUSING = "  - {name: words, kind: patterns, words: [the], models: [refused], on: [response], action: refuse}\n"
METADATA = [("authorization", f"Bearer {KEY}")]


@asynccontextmanager
async def guarded_text(tmp_path: Path) -> AsyncIterator[tuple[Running, GuardServers, grpc.aio.Channel]]:
    """Run a gateway whose text streams are guarded; yield it, the guards, and a channel to it."""
    async with guard_servers() as servers:
        config = SIMULATED + REMOTE.format(target=servers.target) + REFUSING
        async with running(config, tmp_path) as gateway, grpc.aio.insecure_channel(gateway.grpc) as channel:
            yield gateway, servers, channel


async def streamed(channel: grpc.aio.Channel, model: str, prompt: str) -> list[pb.StreamGenerateResponse]:
    message = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text=prompt))])
    request = pb.StreamGenerateRequest(request=pb.GenerateRequest(model=model, messages=[message]))
    return [each async for each in rpc.GenerationServiceStub(channel).StreamGenerate(request, metadata=METADATA)]


def text_of(messages: list[pb.StreamGenerateResponse]) -> str:
    return "".join(event.text_delta for message in messages for event in message.events)


async def test_a_guard_sees_a_text_in_windows_and_lets_it_pass_whole(tmp_path: Path) -> None:
    async with guarded_text(tmp_path) as (_, servers, channel):
        guarded = await streamed(channel, "m", "Say hello to the guard of this stream, please.")
        plain = text_of(await streamed(channel, "plain", "Say hello to the guard of this stream, please."))
        windows = servers.checks_of("pass")
    assert len(windows) > 1
    expected = plain.replace("plays plain", "plays m")  # the simulated model names itself
    assert text_of(guarded) == expected
    assert [window.window.is_last for window in windows] == [False] * (len(windows) - 1) + [True]
    assert windows[0].texts[0].text.startswith(expected[:9])
    assert expected.endswith(windows[-1].window.context + windows[-1].texts[0].text)
    assert any(event.HasField("finished") for event in guarded[-1].events)


async def test_a_refused_window_ends_the_response_and_is_no_failure_of_the_channel(tmp_path: Path) -> None:
    async with guarded_text(tmp_path) as (gateway, _, channel):
        messages = await streamed(channel, "refused", "hello")
        [end] = [event.finished for message in messages for event in message.events if event.HasField("finished")]
        assert end.finish_reason == pb.FINISH_REASON_CONTENT_FILTER
        assert "words" in end.finish_message
        assert " the " not in text_of(messages)
        [usage] = [event.usage for message in messages for event in message.events if event.HasField("usage")][-1:]
        assert usage.output_tokens > 0
        [breaker] = gateway.service._shared.health.snapshot()
        assert (breaker.state, breaker.calls) == (0, 0)
        printed = gateway.service.metrics.exposition().decode()
        assert 'umg_attempts_total{channel="simulated",model="refused",outcome="ok"} 1.0' in printed
        assert 'umg_guard_decisions_total{decision="refused",guard="words",phase="response"} 1.0' in printed
        assert 'umg_guard_seconds_count{guard="words",phase="response"}' in printed
