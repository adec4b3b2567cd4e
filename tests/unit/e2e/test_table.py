"""Table of requests, each sent in all four ways: over HTTP and gRPC, with and without a socket to the service."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.callers.chat_callers import ChatCaller, ChatResult, chat_caller
from tests.support.callers.transports import TRANSPORTS
from tests.support.gateways import KEY
from tests.support.providers.chat_faults import CROWD, TEXT, TOTAL_TOKENS, Provider, provider
from umg_grpc.base.errors import UmgError
from umg_grpc.config import Config, parse
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODELS = ["plain", "whole", "refuses", "crowded"]
SLOW_MODELS = ["endless", "floods"]  # of a channel with short deadlines
FAILING = ["locked", "busy", "curt", "broken", "moved", "drops", "dead", "silent"]  # before the first byte
BROKEN = {
    "cut": "UPSTREAM_CUT",
    "ends-early": "UPSTREAM_CUT",
    "fails": "UPSTREAM_FAILED",
    "endless": "UPSTREAM_TIMEOUT",
}
ODD = ["mislabelled", "lingers"]
WAYS = ["whole", "streamed"]
ATTEMPTS = 30
"""Most measurements of a time, of which the shortest counts: other processes may delay this one."""
ALONE = [f"{model}-{way}" for model in FAILING for way in WAYS] + [f"{model}-streamed" for model in (*BROKEN, *ODD)]
"""Models of channels of their own, each for one test: a gateway avoids a channel after a failure."""
CONFIG = """
drain: 0.2
channels:
  - name: main
    protocols: [chat]
    base_url: {base_url}
    api_key: sk-provider
    models: [{models}, {{id: renamed, upstream: plain}}, {{id: moves-on, upstream: busy}}, {{id: mended, upstream: broken}}]
  - name: slow
    protocols: [chat]
    base_url: {base_url}
    api_key: sk-provider
    timeout: {{connect: 1, first_byte: 0.3, idle: 0.3, total: 1.5}}
    models: [{slow_models}]
  - name: dead
    protocols: [chat]
    base_url: http://127.0.0.1:1/v1
    api_key: sk-provider
    models: [rescued]
  - name: rescue
    protocols: [chat]
    base_url: {base_url}
    api_key: sk-provider
    priority: 1
    models: [{{id: rescued, upstream: plain}}, {{id: moves-on, upstream: plain}}, {{id: mended, upstream: plain}}]
"""
CHANNEL_ALONE = """
  - name: slow-{model}
    protocols: [chat]
    base_url: {base_url}
    api_key: sk-provider
    timeout: {{connect: 1, first_byte: {seconds}, idle: {seconds}, total: {total}}}
    models: [{{id: {model}, upstream: {upstream}}}]
"""


def config(state: Provider) -> Config:
    written = CONFIG.format(base_url=state.base_url, models=", ".join(MODELS), slow_models=", ".join(SLOW_MODELS))
    for model in ALONE:
        upstream = model.rpartition("-")[0]
        written += CHANNEL_ALONE.format(
            model=model,
            upstream=upstream,
            base_url="http://127.0.0.1:1/v1" if upstream == "dead" else state.base_url,
            seconds=0.3 if upstream in {"silent", "endless"} else 20,
            total=1.5 if upstream == "silent" else 30,  # the limit of a response that is no stream
        )
    return parse(written, "test.yaml", {})


@pytest_asyncio.fixture(loop_scope="module")
async def upstream() -> AsyncGenerator[Provider, None]:
    async with provider() as state:
        yield state


@pytest_asyncio.fixture(loop_scope="module", params=TRANSPORTS)
async def gateway(
    request: pytest.FixtureRequest, upstream: Provider, tmp_path: Path
) -> AsyncGenerator[ChatCaller, None]:
    """Yield the caller of a new gateway, for calls after which a gateway avoids a channel or a provider has states."""
    async with chat_caller(request.param, config(upstream), tmp_path) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_upstream() -> AsyncGenerator[Provider, None]:
    async with provider() as state:
        yield state


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_gateways(
    shared_upstream: Provider, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[dict[str, ChatCaller], None]:
    async with AsyncExitStack() as stack:
        made = dict[str, ChatCaller]()
        for name in TRANSPORTS:
            caller = chat_caller(name, config(shared_upstream), tmp_path_factory.mktemp("gateway"))
            made[name] = await stack.enter_async_context(caller)
        yield made


@pytest.fixture(params=TRANSPORTS)
def shared_gateway(request: pytest.FixtureRequest, shared_gateways: dict[str, ChatCaller]) -> ChatCaller:
    return shared_gateways[request.param]


def body(model: str = "plain", **fields: object) -> bytes:
    return json.dumps({"model": model, "messages": [{"role": "user", "content": "Hi"}], **fields}).encode()


@dataclass(frozen=True)
class Refusal:
    id: str
    body: bytes
    status: int
    reason: str
    expected_message: str  # part of the message
    hides: tuple[str, ...] = ()  # texts that the message must not contain
    field: str = ""
    key: str | None = KEY


@dataclass(frozen=True)
class Failure:
    id: str
    model: str
    status: int
    reason: str
    expected_message: str
    hides: tuple[str, ...] = ()


FAILURES = [
    Failure("a provider's 401", "locked", 502, "UPSTREAM_FAILED", "", hides=("sk-provider",)),
    Failure("a provider's 429", "busy", 429, "UPSTREAM_RATE_LIMITED", ""),
    Failure("a provider's 500", "broken", 502, "UPSTREAM_FAILED", "", hides=("10.1.2.3",)),
    Failure("a provider's redirect", "moved", 502, "UPSTREAM_FAILED", ""),
    Failure("a dead provider", "dead", 502, "UPSTREAM_UNREACHABLE", "", hides=("127.0.0.1",)),
    Failure("a provider that hangs up", "drops", 502, "UPSTREAM_CUT", "before it answered"),
    Failure("a provider's 429 without a time", "curt", 429, "UPSTREAM_RATE_LIMITED", ""),
    Failure("a silent provider", "silent", 504, "UPSTREAM_TIMEOUT", "slow"),
]  # fmt: skip
REFUSALS = [
    Refusal("no key", body(), 401, "MISSING_KEY", "key", key=None),
    Refusal("a wrong key", body(), 401, "INVALID_KEY", "key", hides=("sk-umg-wrong",), key="sk-umg-wrong"),
    Refusal("an unknown model", body("nope"), 404, "MODEL_NOT_FOUND", "nope"),
    Refusal("malformed JSON", b'{"model": "plain", ', 400, "MALFORMED_BODY", "JSON"),
    Refusal("JSON that is no object", b"[1]", 400, "MALFORMED_BODY", "object"),
    Refusal("bytes that are no UTF-8", b'{"model": "\xff"}', 400, "MALFORMED_BODY", ""),
    Refusal("messages missing", b'{"model": "plain"}', 400, "MISSING_FIELD", "messages", field="messages"),
    Refusal("model missing", b'{"messages": [{"role": "user", "content": "x"}]}', 400, "MISSING_FIELD", "model", field="model"),
    Refusal("temperature 3", body(temperature=3), 400, "INVALID_FIELD", "temperature", field="temperature"),
    Refusal("a provider's 400", body("refuses"), 400, "UPSTREAM_REJECTED", "may not say", hides=("org-abc123", "https://")),
    Refusal("a wrong key with a wrong body", b"{", 401, "INVALID_KEY", "key", key="sk-umg-wrong"),
    Refusal("65 MiB", body(user="#").replace(b"#", b"x" * (65 << 20)), 413, "BODY_TOO_LARGE", "67108864"),
]  # fmt: skip


# Our own facade, which alone calls without a socket, rejects these itself.
ITS_OWN = {"65 MiB", "a wrong key with a wrong body"}
REFUSED = [
    (name, case) for name in TRANSPORTS for case in REFUSALS if name != "grpc, in process" or case.id not in ITS_OWN
]


both_ways = pytest.mark.parametrize("streamed", [False, True], ids=WAYS)


@pytest.mark.parametrize(
    ("shared_gateway", "case"),
    REFUSED,
    indirect=["shared_gateway"],
    ids=[f"{name}, {case.id}" for name, case in REFUSED],
)
@both_ways
async def test_a_refused_request_has_a_status_and_the_reason(
    case: Refusal, streamed: bool, shared_gateway: ChatCaller
) -> None:
    await check_refusal(shared_gateway, case, streamed)


@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case.id)
@both_ways
async def test_a_failed_request_has_a_status_and_the_reason(
    case: Failure, streamed: bool, shared_gateway: ChatCaller
) -> None:
    model = f"{case.model}-{WAYS[streamed]}"
    expected = Refusal(case.id, body(model), case.status, case.reason, case.expected_message, case.hides)
    await check_refusal(shared_gateway, expected, streamed)


async def check_refusal(gateway: ChatCaller, case: Refusal, streamed: bool) -> None:
    """Make the call. Fail unless its error is that of the case."""
    make = gateway.stream if streamed else gateway.call
    answer = await make(case.body, case.key)
    assert answer.status == case.status, answer
    assert not answer.after_first_byte
    assert (answer.reason or case.reason) == case.reason
    if not answer.reason:  # over HTTP the format's code states it
        error = UmgError(pb.ErrorReason.Value(f"ERROR_REASON_{case.reason}"), "")
        assert answer.code == json.loads(TEXT_FORMATS["chat"].encode_error(error, case.status))["error"]["code"]
    assert case.expected_message in answer.message
    assert not [secret for secret in case.hides if secret in answer.message]
    assert answer.field == case.field
    if not gateway.name.startswith("grpc, in process"):  # there a malformed body reaches no service
        assert answer.headers["x-request-id"]
    assert ("retry-after" in answer.headers) == (case.status == 429)


async def test_an_answer_is_complete(shared_gateway: ChatCaller, shared_upstream: Provider) -> None:
    answer = await shared_gateway.call(body(seed=7, x_unknown={"a": [1, 2.0]}), **{"x-request-id": "mine-1"})
    assert (answer.status, answer.text, answer.finish, answer.model) == (200, TEXT, "stop", "plain")
    assert answer.total_tokens == TOTAL_TOKENS
    if shared_gateway.name != "grpc, in process":  # whose only caller, our own facade, has the request id
        assert answer.headers["x-request-id"] == "mine-1"
    assert shared_upstream.last == json.loads(body(seed=7, x_unknown={"a": [1, 2.0]}))
    assert shared_upstream.received[-1].headers["authorization"] == "Bearer sk-provider"


async def test_a_stream_arrives_in_pieces(shared_gateway: ChatCaller, shared_upstream: Provider) -> None:
    answer = await shared_gateway.stream(body(stream_options={"include_usage": True}))
    assert (answer.text, answer.finish, answer.model, answer.total_tokens) == (TEXT, "stop", "plain", TOTAL_TOKENS)
    assert shared_upstream.last["stream"] is True


async def test_an_answer_has_the_public_model_id(shared_gateway: ChatCaller, shared_upstream: Provider) -> None:
    assert (await shared_gateway.call(body("renamed"))).model == "renamed"
    assert (await shared_gateway.stream(body("renamed"))).model == "renamed"
    assert [seen["model"] for seen in shared_upstream.bodies[-2:]] == ["plain", "plain"]


async def test_an_unstreamed_answer_of_a_provider_is_converted_to_a_stream(shared_gateway: ChatCaller) -> None:
    answer = await shared_gateway.stream(body("whole", stream_options={"include_usage": True}))
    assert (answer.text, answer.finish, answer.total_tokens) == (TEXT, "stop", TOTAL_TOKENS)


async def test_the_second_channel_answers_if_the_first_is_unreachable(gateway: ChatCaller) -> None:
    for model in ("rescued", "moves-on", "mended"):  # an unreachable channel, a rate-limited one, one that fails
        assert (await gateway.call(body(model))).text == TEXT
        assert (await gateway.stream(body(model))).text == TEXT


@pytest.mark.parametrize(("model", "reason"), BROKEN.items(), ids=BROKEN)
async def test_a_stream_without_its_end_is_an_error(model: str, reason: str, shared_gateway: ChatCaller) -> None:
    answer = await shared_gateway.stream(body(f"{model}-streamed"))
    assert answer.after_first_byte
    assert answer.reason in {"", reason}
    assert answer.message


async def test_a_caller_that_disconnects_stops_the_provider_within_100_ms(
    gateway: ChatCaller, upstream: Provider
) -> None:
    loop, seconds = asyncio.get_running_loop(), 1.0
    for _ in range(ATTEMPTS):
        upstream.streaming.clear()
        upstream.left.clear()
        async with aclosing(gateway.deltas(body("endless"))) as deltas:
            assert await anext(deltas)
            await asyncio.wait_for(upstream.streaming.wait(), 60)
        left_at = loop.time()
        await asyncio.wait_for(upstream.left.wait(), 60)
        if (seconds := min(seconds, upstream.left_at - left_at)) < 0.1:
            break
    assert seconds < 0.1


async def test_several_callers_are_served_concurrently(gateway: ChatCaller) -> None:
    answers: list[ChatResult] = await asyncio.gather(*(gateway.stream(body("crowded")) for _ in range(CROWD)))
    assert {answer.text for answer in answers} == {TEXT}


async def test_the_models_are_listed(shared_gateway: ChatCaller) -> None:
    assert set(await shared_gateway.models()) == {
        *MODELS,
        *SLOW_MODELS,
        *ALONE,
        "renamed",
        "rescued",
        "moves-on",
        "mended",
    }


@pytest.mark.parametrize("model", ODD)
async def test_a_stream_with_its_end_is_an_answer_despite_oddities(model: str, shared_gateway: ChatCaller) -> None:
    """Read streams with events labelled as JSON, and with a connection that breaks behind the end marker."""
    answer = await shared_gateway.stream(body(f"{model}-streamed"))
    assert (answer.text, answer.finish, answer.message) == (TEXT, "stop", "")


async def test_a_caller_that_stops_reading_does_not_occupy_the_provider_for_ever(
    gateway: ChatCaller, upstream: Provider
) -> None:
    async with aclosing(gateway.deltas(body("floods"))) as deltas:
        assert await anext(deltas)
        await asyncio.wait_for(upstream.left.wait(), 60)  # `total` is 1.5 s


async def test_dropped_fields_are_named_or_refused(shared_gateway: ChatCaller) -> None:
    spoken = body(extra_body={"max_tokens": 5})  # limits are checked at the top level, where they belong
    answer = await shared_gateway.call(spoken)
    assert "max_tokens" in answer.headers["x-umg-dropped"]
    refused = await shared_gateway.call(spoken, **{"x-umg-strict": "true"})
    assert (refused.status, "x-umg-strict" in refused.message) == (400, True)
