"""Command `umg serve` and the commands beside it as processes, with the arguments and environment of an operator."""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import grpc
import pytest
import pytest_asyncio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.support.databases import create_database
from tests.support.polling import pause
from tests.support.processes import UMG, Served, run, serve
from tests.support.providers.chat_faults import TEXT, Provider, provider
from tests.support.proxies import NOWHERE
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.config import Address, built_in
from umg_grpc.process.serve_options import Options
from umg_grpc.process.worker_processes import Workers
from umg_grpc.v1 import pb, rpc

CONFIG = """
drain: 600
channels:
  - name: main
    protocols: [chat]
    base_url: {base_url}
    api_key: ${{PROVIDER_KEY}}
    models: [{models}]
"""
ENVIRONMENT = {"UMG_API_KEY": "sk-umg-operator", "PROVIDER_KEY": "sk-provider"}
KEY = ENVIRONMENT["UMG_API_KEY"]


@dataclass
class Setting:
    provider: Provider
    config: Path
    data: Path
    session: aiohttp.ClientSession

    def write(self, models: str) -> None:
        self.config.write_text(CONFIG.format(base_url=self.provider.base_url, models=models))

    async def generate(self, served: Served, model: str = "plain", key: str = KEY, **fields: object) -> tuple[int, str]:
        """Call the model. Return the status and the text of the response."""
        body = {"model": model, "messages": [{"role": "user", "content": "Hi"}], **fields}
        headers = {"authorization": f"Bearer {key}"}
        async with self.session.post(f"{served.http}/v1/chat/completions", json=body, headers=headers) as response:
            answer = await response.json()
        if response.status != 200:
            return response.status, answer["error"]["message"]
        return 200, answer["choices"][0]["message"]["content"]

    async def embed(self, served: Served, model: str) -> int:
        headers = {"authorization": f"Bearer {KEY}"}
        body = {"model": model, "input": "Hi"}
        async with self.session.post(f"{served.http}/v1/embeddings", json=body, headers=headers) as response:
            return response.status

    async def models(self, served: Served) -> list[str]:
        headers = {"authorization": f"Bearer {KEY}"}
        async with self.session.get(f"{served.http}/v1/models", headers=headers) as response:
            return [model["id"] for model in (await response.json())["data"]]

    async def figures(self, served: Served) -> str:
        async with self.session.get(f"{served.http}/metrics") as response:
            return await response.text()


@pytest_asyncio.fixture
async def setting(tmp_path: Path) -> AsyncGenerator[Setting, None]:
    async with provider() as upstream, aiohttp.ClientSession() as session:
        made = Setting(upstream, tmp_path / "config.yaml", tmp_path / "data", session)
        made.write("plain")
        yield made


async def test_one_process_serves_both_faces_and_ends_with_0(setting: Setting) -> None:
    async with serve(setting.data, "--config", str(setting.config), environment=ENVIRONMENT) as served:
        assert await setting.generate(served) == (200, TEXT)
        async with grpc.aio.insecure_channel(served.grpc) as channel:
            request, metadata = pb.ListModelsRequest(), (("authorization", f"Bearer {KEY}"),)
            models = await rpc.ModelServiceStub(channel).ListModels(request, metadata=metadata)
            assert [model.id for model in models.models] == ["plain"]
        for path in ("healthz", "readyz", "metrics"):
            async with setting.session.get(f"{served.http}/{path}") as response:
                assert response.status == 200
        assert await served.stop() == 0


async def test_a_call_that_reaches_no_channel_is_counted_for_its_model(setting: Setting) -> None:
    setting.write("plain, endless")
    full = "    concurrency: 1\noverload: {queue: 0}\n"
    setting.config.write_text(setting.config.read_text() + full)
    headers = {"authorization": f"Bearer {KEY}"}
    body = {"model": "endless", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    async with serve(setting.data, "--config", str(setting.config), environment=ENVIRONMENT) as served:
        async with setting.session.post(f"{served.http}/v1/chat/completions", json=body, headers=headers):
            await setting.provider.streaming.wait()
            assert (await setting.generate(served))[0] == 503
            line = await served.until_logged("UNAVAILABLE")
        figures = await setting.figures(served)
        assert 'umg_calls_total{channel="",method="Generate",model="plain",outcome="UNAVAILABLE"} 1.0' in figures
        assert "plain" in line
        setting.provider.resume.set()


async def test_without_a_variable_the_first_start_makes_a_key_that_later_starts_know(setting: Setting) -> None:
    environment = {"PROVIDER_KEY": "sk-provider", "UMG_API_KEY": ""}
    keys = []
    for _ in range(2):
        async with serve(setting.data, "--config", str(setting.config), environment=environment) as served:
            keys.append(served.key)
            assert await setting.generate(served, key=served.key) == (200, TEXT)
            assert await served.stop(signal.SIGINT) == 0
    assert keys[0] == keys[1]
    assert (setting.data / "bootstrap.key").stat().st_mode & 0o777 == 0o600


async def test_the_http_face_serves_in_a_process_of_its_own(setting: Setting) -> None:
    async with AsyncExitStack() as stack:
        arguments = ("--config", str(setting.config), "--faces")
        behind = await stack.enter_async_context(serve(setting.data, *arguments, "grpc", environment=ENVIRONMENT))
        environment = {**ENVIRONMENT, **NOWHERE}  # a proxy is not for the other process
        front = await stack.enter_async_context(
            serve(setting.data, *arguments, "http", "--grpc", behind.grpc, environment=environment)
        )
        assert await setting.generate(front) == (200, TEXT)
        assert _children(front.process.pid) == []
        front.process.send_signal(signal.SIGHUP)
        await front.until_logged("nothing here to reload")
        async with setting.session.get(f"{front.http}/readyz") as response:
            assert response.status == 200
        assert await behind.stop() == 0
        status, message = await setting.generate(front)
        assert (status, "cannot be reached" in message) == (503, True)
        assert await front.stop() == 0


async def test_workers_take_a_port_whose_last_connections_linger() -> None:
    """Start as after a restart, when the last process closed its callers' connections."""
    held = asyncio.Event()

    async def close_first(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()
        held.set()

    server = await asyncio.start_server(close_first, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await held.wait()
    assert await reader.read() == b""
    writer.close()
    server.close()
    workers = Workers(Options(None, Address("127.0.0.1", port), Address("127.0.0.1", 0), Path()), built_in(), None)
    assert workers._hold(Address("127.0.0.1", port), "HTTP").port == port
    await workers._stack.aclose()


async def test_workers_share_the_ports_and_add_up_their_figures(setting: Setting) -> None:
    arguments = ("--config", str(setting.config), "--workers", "2")
    async with serve(setting.data, *arguments, environment=ENVIRONMENT) as served:

        async def fresh() -> tuple[int, str]:  # a connection of its own each time, so that both workers get some
            async with aiohttp.ClientSession() as session:
                return await Setting(setting.provider, setting.config, setting.data, session).generate(served)

        answers = await asyncio.gather(*(fresh() for _ in range(20)))
        assert set(answers) == {(200, TEXT)}
        counted = 'umg_calls_total{channel="main",method="Generate",model="plain",outcome="OK"} 20.0'
        async with asyncio.timeout(60):
            while True:  # each worker sends its figures to the others once a second, without a signal here
                if counted in await setting.figures(served):
                    break
                await asyncio.sleep(0.05)  # so as not to keep the workers busy with notifications
        setting.write("plain, whole")
        served.process.send_signal(signal.SIGHUP)
        for _ in range(2):
            served.log.remove(await served.until_logged("the config was reloaded"))
        assert await setting.generate(served, "whole") == (200, TEXT)
        async with grpc.aio.insecure_channel(served.grpc) as channel:
            request, metadata = pb.GetModelRequest(model="plain"), (("authorization", f"Bearer {KEY}"),)
            answer = await rpc.ModelServiceStub(channel).GetModel(request, metadata=metadata)
            assert answer.model.id == "plain"
        assert await served.stop() == 0


async def test_a_worker_that_dies_is_started_again_and_none_outlives_its_parent(setting: Setting) -> None:
    arguments = ("--config", str(setting.config), "--workers", "2")
    # its workers are new processes, as those of operators
    async with serve(setting.data, *arguments, environment=ENVIRONMENT, program=UMG) as served:
        workers = _children(served.process.pid)
        assert len(workers) == 2
        os.kill(workers[0], signal.SIGKILL)
        await served.until_logged("a worker ended and is started again")
        assert (await setting.generate(served))[0] == 200
        watched = [os.pidfd_open(pid) for pid in _children(served.process.pid)]
        served.process.kill()
        for descriptor in watched:
            await asyncio.wait_for(_readable(descriptor), 60)
            os.close(descriptor)


async def test_hangup_applies_a_new_config_and_keeps_the_old_one_for_an_invalid_file(setting: Setting) -> None:
    async with serve(setting.data, "--config", str(setting.config), environment=ENVIRONMENT) as served:
        assert (await setting.generate(served, "whole"))[0] == 404
        setting.write("plain, whole")
        served.process.send_signal(signal.SIGHUP)
        await served.until_logged("the config was reloaded")
        assert await setting.generate(served, "whole") == (200, TEXT)
        setting.config.write_text("channels: nonsense")
        served.process.send_signal(signal.SIGHUP)
        assert f"{setting.config}:1" in await served.until_logged("was not reloaded")
        assert await setting.generate(served, "whole") == (200, TEXT)


async def test_a_drain_lets_a_stream_end_and_refuses_new_connections(setting: Setting) -> None:
    setting.write("endless")
    async with serve(setting.data, "--config", str(setting.config), environment=ENVIRONMENT) as served:
        body = {"model": "endless", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
        headers = {"authorization": f"Bearer {KEY}"}
        async with setting.session.post(f"{served.http}/v1/chat/completions", json=body, headers=headers) as response:
            await response.content.readany()
            served.process.send_signal(signal.SIGTERM)
            await served.until_logged("draining")
            assert served.process.returncode is None
            setting.provider.resume.set()
            rest = await response.content.read()
            assert rest.endswith(b"data: [DONE]\n\n")
        assert await asyncio.wait_for(served.process.wait(), 60) == 0


async def test_keys_are_limited_as_they_were_issued(setting: Setting) -> None:
    data = ("--data", str(setting.data), "--config", str(setting.config))
    await create_database(setting.data)
    code, out, _ = await run("keys", "create", "narrow", "--models", "other-*", *data, environment=ENVIRONMENT)
    assert code == 0
    narrow = out.splitlines()[-1]
    _, out, _ = await run("keys", "create", "slow", "--rpm", "1", *data, environment=ENVIRONMENT)
    slow = out.splitlines()[-1]
    async with serve(setting.data, "--config", str(setting.config), environment=ENVIRONMENT) as served:
        status, message = await setting.generate(served, key=narrow)
        assert (status, "plain" in message, "other-*" in message) == (404, True, True)
        assert await setting.generate(served, key=slow) == (200, TEXT)
        assert (await setting.generate(served, key=slow))[0] == 429
        _, out, _ = await run("keys", "create", "late", *data, environment=ENVIRONMENT)
        late = out.splitlines()[-1]
        assert await setting.generate(served, key=late) == (200, TEXT)  # created while the gateway runs
        code, _, _ = await run("keys", "revoke", "late", *data, environment=ENVIRONMENT)
        assert code == 0
        async with asyncio.timeout(60):
            while (await setting.generate(served, key=late))[0] != 401:  # within seconds, as documented
                await pause()
    _, out, _ = await run("keys", "list", *data, environment=ENVIRONMENT)
    assert all(name in out for name in ("narrow", "slow", "late", "bootstrap"))
    assert not [secret for secret in (narrow, slow, late, KEY) if secret in out]


@dataclass(frozen=True)
class Mistake:
    id: str
    arguments: tuple[str, ...]
    expected_message: str
    code: int = 2


MISTAKES = [
    Mistake("a config that is not there", ("serve", "--config", "nowhere.yaml"), "nowhere.yaml: cannot be read"),
    Mistake("an address without a port", ("serve", "--http", "localhost"), "HOST:PORT"),
    Mistake("a face that there is not", ("serve", "--faces", "http,soap"), "http,grpc"),
    Mistake("no workers", ("serve", "--workers", "0"), "--workers"),
    Mistake("no pattern at all", ("keys", "create", "x", "--models", " , "), "at least one pattern"),
    Mistake("a time that is over", ("keys", "create", "x", "--expires", "2020-01-01"), "is in the past", 1),
    Mistake(
        "an operation that there is not",
        ("keys", "create", "x", "--operations", "sing"),
        "there is no operation `sing`",
        1,
    ),
    Mistake("a tag without a value", ("keys", "create", "x", "--tag", "team"), "no NAME=VALUE"),
    Mistake("an overlap that is none", ("keys", "rotate", "x", "--overlap", "soon"), "--overlap"),
    Mistake("a time that is none", ("keys", "create", "x", "--expires", "tomorrow"), "ISO 8601"),
    Mistake("a host that is not there", ("serve", "--http", "nohost.invalid:0"), "nohost.invalid:0", 1),
]


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case.id)
async def test_a_mistake_on_the_command_line_is_reported_without_a_traceback(case: Mistake, tmp_path: Path) -> None:
    await create_database(tmp_path)
    code, out, err = await run(*case.arguments, "--data", str(tmp_path))
    assert code == case.code
    assert case.expected_message in err
    assert "Traceback" not in out + err


async def test_a_missing_variable_stops_the_start_with_file_and_line(setting: Setting) -> None:
    arguments = ("serve", "--config", str(setting.config), "--data", str(setting.data))
    assert "PROVIDER_KEY" not in os.environ
    code, _, err = await run(*arguments)
    assert code == 2
    assert f"{setting.config}:7" in err
    assert "PROVIDER_KEY" in err


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def _readable(descriptor: int) -> None:
    loop, done = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, done.set)
    try:
        await done.wait()
    finally:
        loop.remove_reader(descriptor)


LOCAL = """
  - {name: local, protocols: [local], models: [smollm2-135m-instruct, wordllama-256, wordllama-rerank]}
"""


def without(package: str, setting: Setting) -> dict[str, str]:
    """Return the environment of a process in which the package is not installed, as on a platform that lacks it."""
    hidden = setting.config.parent / "hidden"
    hidden.mkdir()
    (hidden / "sitecustomize.py").write_text(f"import sys\nsys.modules[{package!r}] = None\n")
    setting.config.write_text(setting.config.read_text() + LOCAL)
    return {**ENVIRONMENT, "PYTHONPATH": str(hidden)}


async def test_without_the_local_text_model_the_other_models_are_served_and_a_warning_is_logged(
    setting: Setting,
) -> None:
    environment = without("xllamacpp", setting)
    async with serve(setting.data, "--config", str(setting.config), environment=environment) as served:
        line = await served.until_logged("serving without the local model")
        assert "pip install xllamacpp" in line
        await served.until_logged("channel local: smollm2-135m-instruct: no local text model runs here")
        assert await setting.generate(served) == (200, TEXT)
        status, message = await setting.generate(served, "smollm2-135m-instruct")
        assert (status, "smollm2-135m-instruct" in message) == (404, True)
        assert await setting.models(served) == ["plain", "wordllama-256", "wordllama-rerank"]
        assert await setting.embed(served, "wordllama-256") == 200


async def test_without_the_local_embedding_model_the_other_models_are_served_and_a_warning_is_logged(
    setting: Setting,
) -> None:
    environment = without("wordllama", setting)
    async with serve(setting.data, "--config", str(setting.config), environment=environment) as served:
        line = await served.until_logged("channel local: wordllama-256: ")
        assert "pip install wordllama" in line
        await served.until_logged("channel local: wordllama-rerank: ")
        assert await setting.embed(served, "wordllama-256") == 404
        assert await setting.models(served) == ["plain", "smollm2-135m-instruct"]
        assert await setting.generate(served) == (200, TEXT)


async def test_a_local_model_that_embeds_needs_no_process_of_its_own(setting: Setting) -> None:
    local = "  - {name: local, protocols: [local], models: [{id: near, upstream: wordllama-256}]}\n"
    setting.config.write_text(setting.config.read_text() + local)
    async with serve(setting.data, "--config", str(setting.config), environment=ENVIRONMENT) as served:
        assert _children(served.process.pid) == []
        assert await setting.embed(served, "near") == 200
        status, message = await setting.generate(served, "near")
        assert (status, "cannot generate text; it can embed texts" in message) == (400, True)


async def test_check_and_models_print_the_models_of_a_config(setting: Setting) -> None:
    code, out, _ = await run("check", str(setting.config), environment=ENVIRONMENT)
    assert (code, "1 channel, 1 model\n" in out) == (0, True)
    code, out, _ = await run("models", "--config", str(setting.config), environment=ENVIRONMENT)
    assert (code, "main (plain)" in out) == (0, True)
    setting.config.write_text(setting.config.read_text() + "    ca_file: nowhere.pem\n")
    code, _, err = await run("check", str(setting.config), environment=ENVIRONMENT)
    assert (code, "nowhere.pem" in err, "Traceback" in err) == (2, True, False)
    setting.config.write_text("channels: [{name: l, protocols: [local], models: [m]}]\nredis: redis://h:abc/0")
    for command in (("check", str(setting.config)), ("serve", "--config", str(setting.config))):
        code, _, err = await run(*command)
        assert (code, f"{setting.config}:2: redis: expected redis://HOST:PORT/NUMBER" in err) == (2, True)
        assert "Traceback" not in err
    setting.config.write_text("channels: [{name: l, protocols: [local], models: [gpt-2]}]")
    code, _, err = await run("check", str(setting.config))
    assert (code, "there is no local model gpt-2" in err) == (2, True)


VECTORS = """
channels:
  - {name: spare, protocols: [embeddings], base_url: http://host/v1, priority: 1, models: [vectors]}
  - {name: first, protocols: [native_embeddings, rerank], base_url: http://host/v1, models: [vectors, ranking]}
models:
  vectors: {capabilities: {operations: [embed], dimensions: 512}}
  ranking:
    capabilities: {operations: [rerank]}
"""
MANY = [f"vectors-{number}" for number in range(10)]


async def test_models_that_generate_nothing_are_listed_with_their_channels_in_order(setting: Setting) -> None:
    setting.config.write_text(VECTORS)
    code, out, _ = await run("models", "--config", str(setting.config), environment={"COLUMNS": "120"})
    assert (code, "first (vectors), spare (vectors)" in out, "first (ranking)" in out) == (0, True, True)
    code, out, _ = await run("check", str(setting.config))
    assert (code, "2 channels, 2 models\n" in out) == (0, True)
    unpriced = "warning: 2 models without a price, refused to keys with a budget: vectors, ranking; set `price`"
    assert unpriced in out
    setting.config.write_text(VECTORS.replace("models: [vectors]", f"models: [vectors, {', '.join(MANY)}]"))
    assert f"12 models without a price, refused to keys with a budget: vectors, {', '.join(MANY)}, ranking; " in (
        await run("check", str(setting.config))
    )[1].replace("\n", " ")
    setting.config.write_text(f"{VECTORS}unpriced: free\n")
    code, out, _ = await run("check", str(setting.config))
    assert (code, "warning" in out) == (0, False)
    setting.config.write_text(VECTORS.replace("[rerank]}", "[generate]}"))
    code, _, err = await run("check", str(setting.config))
    assert code == 2
    assert f"{setting.config}:8: models.ranking.capabilities.operations[0]: expected what a channel" in err


async def test_a_model_that_its_channel_cannot_serve_is_named_by_the_check_and_the_start(setting: Setting) -> None:
    channel = "{name: c, protocols: [chat], base_url: 'http://127.0.0.1:1', models: [gpt-5, dall-e-3]}"
    setting.config.write_text(f"channels: [{channel}]\n")
    code, out, _ = await run("check", str(setting.config))
    line = "channels[0].models[1]: `dall-e-3` is known to make images"
    assert (code, f"{setting.config}: warning: {line}" in out) == (0, True)
    async with serve(setting.data, "--config", str(setting.config)) as served:
        assert line in await served.until_logged("dall-e-3")


async def test_a_key_is_shown_as_it_was_issued(setting: Setting) -> None:
    limits = ("--tpm", "9000", "--concurrency", "3")
    data = ("--data", str(setting.data), "--config", str(setting.config))
    await create_database(setting.data)
    await run("keys", "create", "[red]n", "--models", "[a-z]*,b", "--rpm", "7", *limits, *data, environment=ENVIRONMENT)
    code, _, err = await run("keys", "revoke", "nobody", *data, environment=ENVIRONMENT)
    assert (code, "there is no such key" in err) == (1, True)
    code, out, _ = await run("keys", "show", "[red]n", *data, environment=ENVIRONMENT)
    assert code == 0
    assert all(part in out for part in ("[red]n", "[a-z]*, b", " 7\n", " 9000\n", " 3\n", "live"))


async def test_a_key_is_shown_with_its_scopes_and_rotated(setting: Setting) -> None:
    data = ("--data", str(setting.data), "--config", str(setting.config))
    await create_database(setting.data)
    scopes = ("--operations", "embed,models", "--admin", "--owner", "search", "--tag", "a=b", "--tag", "c=d=e")
    _, out, _ = await run("keys", "create", "scoped", *scopes, *data, environment=ENVIRONMENT)
    old = out.splitlines()[-1]
    code, out, _ = await run("keys", "rotate", "scoped", "--overlap", "90m", *data, environment=ENVIRONMENT)
    new = out.splitlines()[-1]
    assert (code, new.startswith("sk-umg-"), new != old) == (0, True, True)
    assert f"{old[:11]}… is valid until" in out
    _, out, _ = await run("keys", "show", "scoped", *data, environment=ENVIRONMENT)
    fields = dict(line.split(maxsplit=1) for line in out.splitlines() if not line.startswith("former"))
    assert (fields["operations"], fields["owner"], fields["tags"]) == ("embed, models, admin", "search", "a=b, c=d=e")
    assert old[:11] in out
    assert new[:11] in out
    assert old not in out
    assert new not in out


async def test_an_expired_drain_fails_the_open_call_and_ends(setting: Setting) -> None:
    setting.write("endless")
    setting.config.write_text(setting.config.read_text().replace("drain: 600", "drain: 6"))
    loop = asyncio.get_running_loop()
    async with serve(setting.data, "--config", str(setting.config), environment=ENVIRONMENT) as served:
        body = {"model": "endless", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
        headers = {"authorization": f"Bearer {KEY}"}
        async with setting.session.post(f"{served.http}/v1/chat/completions", json=body, headers=headers) as response:
            seen = await response.content.readany()
            stopped_at = loop.time()
            served.process.send_signal(signal.SIGTERM)
            while chunk := await response.content.readany():  # raises where the body has no end
                seen += chunk
        assert b"shutting down" in seen.rpartition(b"data: ")[2]
        assert await asyncio.wait_for(served.process.wait(), 60) == 0
        assert loop.time() - stopped_at < 2 * 6  # as long as it would take where each of two waits took the whole drain


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
async def test_calls_over_grpc_that_outlast_a_drain_fail_as_unavailable(setting: Setting, streamed: bool) -> None:
    setting.write(model := "endless" if streamed else "silent")
    setting.config.write_text(setting.config.read_text().replace("drain: 600", "drain: 1"))
    request = pb.GenerateRequest(model=model, messages=[pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="Hi"))])])  # fmt: skip
    metadata = (("authorization", f"Bearer {KEY}"),)
    async with serve(setting.data, "--config", str(setting.config), environment=ENVIRONMENT) as served:
        async with grpc.aio.insecure_channel(served.grpc) as channel:
            stub = rpc.GenerationServiceStub(channel)
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                if streamed:
                    messages = stub.StreamGenerate(pb.StreamGenerateRequest(request=request), metadata=metadata)
                    await messages.read()
                    served.process.send_signal(signal.SIGTERM)  # only once: a second signal ends the process at once
                    while await messages.read() != grpc.aio.EOF:
                        pass
                else:
                    call = asyncio.ensure_future(stub.Generate(request, metadata=metadata))
                    await setting.provider.silent.wait()
                    served.process.send_signal(signal.SIGTERM)
                    await call
            failure = from_rpc(caught.value)
            assert (failure.name, failure.retry_after) == ("UNAVAILABLE", 1)
            assert "shutting down" in failure.message
        assert await asyncio.wait_for(served.process.wait(), 60) == 0


async def test_health_is_served_over_grpc_and_ends_with_the_drain(setting: Setting) -> None:
    async with serve(setting.data, "--config", str(setting.config), environment=ENVIRONMENT) as served:
        async with grpc.aio.insecure_channel(served.grpc) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            service = health_pb2.HealthCheckRequest(service="umg.v1.GenerationService")
            assert (await stub.Check(service)).status == health_pb2.HealthCheckResponse.SERVING
            watch = stub.Watch(service)
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
            served.process.send_signal(signal.SIGTERM)
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert await asyncio.wait_for(served.process.wait(), 60) == 0


async def test_a_closed_standard_input_changes_nothing(setting: Setting) -> None:
    line = f"exec {' '.join(UMG)} serve --config {setting.config} --data {setting.data}"
    process = await asyncio.create_subprocess_shell(
        f"{line} --http 127.0.0.1:0 --grpc 127.0.0.1:0 0<&-",
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, **ENVIRONMENT},
    )
    assert process.stdout is not None
    while not (line := (await asyncio.wait_for(process.stdout.readline(), 180)).decode()).startswith("curl"):
        assert line
    process.terminate()
    await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0
