"""Text document, "Authentication"; readings, 2."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.documents.spec.callers import frames_of
from tests.support.callers.api import ApiClient, Reply
from tests.support.gateways import KEY, revoke
from umg_grpc.access.api_keys import ApiKeys

pytestmark = pytest.mark.asyncio(loop_scope="module")

TURNS = [{"role": "user", "content": "Hi"}]
EMBEDDED = {"content": {"parts": [{"text": "Hi"}]}}
RANKED = {"model": "rerank-v1", "query": "Hi", "documents": ["Hi"]}
CONTENTS = {"contents": [{"parts": [{"text": "Hi"}]}]}


@dataclass(frozen=True)
class Operation:
    """An operation, and a body that it accepts."""

    id: str
    path: str
    body: Any
    method: str = "POST"
    own_headers: tuple[str, ...] = ()  # names of other headers than `authorization` that may hold a key
    query: bool = False  # whether `?key=` may hold a key

    async def call(self, gateway: ApiClient, headers: dict[str, str], query: str = "") -> Reply:
        joint = "&" if "?" in self.path else "?"
        path = f"{self.path}{joint}{query}" if query else self.path
        return await gateway.send(self.method, path, self.body, headers=headers)


NATIVE = ("x-vendorg-api-key", "x-goog-api-key")
OPERATIONS = [
    Operation("chat", "/v1/chat/completions", {"model": "famO-5", "messages": TURNS}),
    Operation("responses", "/v1/responses", {"model": "famO-5", "input": TURNS}),
    Operation("input_tokens", "/v1/responses/input_tokens", {"model": "famO-5", "input": TURNS}),
    Operation(
        "messages",
        "/v1/messages",
        {"model": "famC-sonnet-4-5", "messages": TURNS, "max_tokens": 50},
        own_headers=("x-api-key",),
    ),
    Operation(
        "count_tokens",
        "/v1/messages/count_tokens",
        {"model": "famC-sonnet-4-5", "messages": TURNS},
        own_headers=("x-api-key",),
    ),
    *(
        Operation(f"native {action}", f"/v1beta/models/famG-2.5-pro:{action}", CONTENTS, own_headers=NATIVE, query=True)
        for action in ("generateContent", "streamGenerateContent?alt=sse", "countTokens")
    ),
    Operation("native under /v1", "/v1/models/famG-2.5-pro:generateContent", CONTENTS, own_headers=NATIVE, query=True),
    *(
        Operation(
            f"{action} under {root}",
            f"{root}/models/text-embedding-004:{action}",
            body,
            own_headers=NATIVE,
            query=True,
        )
        for root in ("/v1beta", "/v1")
        for action, body in (("embedContent", EMBEDDED), ("batchEmbedContents", {"requests": [EMBEDDED]}))
    ),
    Operation("embeddings", "/v1/embeddings", {"model": "text-embedding-3-small", "input": "Hi"}),
    Operation("rerank", "/v1/rerank", RANKED),
    Operation("rerank v2", "/v2/rerank", RANKED),
]
STORED = [
    Operation("get", "/v1/responses/resp_x", None, "GET"),
    Operation("delete", "/v1/responses/resp_x", None, "DELETE"),
    Operation("cancel", "/v1/responses/resp_x/cancel", {}),
    Operation("input_items", "/v1/responses/resp_x/input_items", None, "GET"),
]
LISTS = [
    Operation("model list", "/v1/models", None, "GET", ("x-api-key", *NATIVE), query=True),
    Operation("model list under /v1beta", "/v1beta/models", None, "GET", ("x-api-key", *NATIVE), query=True),
    Operation("model", "/v1/models/famO-5", None, "GET", ("x-api-key", *NATIVE), query=True),
]
ALL = [*OPERATIONS, *STORED, *LISTS]
HEADERS = ("x-vendorg-api-key", "x-goog-api-key", "x-api-key")

every = pytest.mark.parametrize("operation", ALL, ids=lambda operation: operation.id)
generating = pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
with_credentials = pytest.mark.parametrize("operation", [*OPERATIONS, *LISTS], ids=lambda operation: operation.id)


def refused(operation: Operation, reply: Reply) -> None:
    """Check that the reply is a 401 with the error body of the operation's format."""
    assert reply.status == 401, reply.text
    error = reply.body["error"]
    assert error["message"]
    if operation.path.startswith("/v1beta/") or ("models/" in operation.path and operation.method == "POST"):
        assert (error["code"], error["status"]) == (401, "UNAUTHENTICATED")
    elif operation.id == "messages":
        assert (reply.body["type"], error["type"]) == ("error", "authentication_error")
    else:
        assert error["code"] == "invalid_api_key"


@every
async def test_authentication_1_every_operation_requires_credentials(gateway: ApiClient, operation: Operation) -> None:
    refused(operation, await operation.call(gateway, {}))


@with_credentials
async def test_authentication_2_bearer_is_the_primary_method(gateway: ApiClient, operation: Operation) -> None:
    reply = await operation.call(gateway, {"authorization": f"Bearer {KEY}"})
    assert reply.status == 200
    assert (await operation.call(gateway, {"authorization": f"bearer {KEY}"})).status == 200


@with_credentials
async def test_authentication_3_a_key_header_counts_on_its_own_paths_only(
    gateway: ApiClient, operation: Operation
) -> None:
    for name in HEADERS:
        reply = await operation.call(gateway, {name: KEY})
        if name in operation.own_headers:
            assert reply.status == 200, name
        else:
            refused(operation, reply)


@with_credentials
async def test_authentication_3_a_key_in_the_query_counts_on_native_paths_only(
    gateway: ApiClient, operation: Operation
) -> None:
    reply = await operation.call(gateway, {}, f"key={KEY}")
    if operation.query:
        assert reply.status == 200
    else:
        refused(operation, reply)


@every
async def test_authentication_4_a_wrong_key_is_401(gateway: ApiClient, operation: Operation) -> None:
    for headers in (
        {"authorization": "Bearer sk-nobody"},
        {"authorization": f"Basic {KEY}"},
        {"authorization": "Bearer "},
        {"authorization": KEY},
        *({name: "sk-nobody"} for name in operation.own_headers),
    ):
        refused(operation, await operation.call(gateway, headers))
    if operation.query:
        refused(operation, await operation.call(gateway, {}, "key=sk-nobody"))


@generating
async def test_authentication_4_a_wrong_key_comes_before_a_wrong_body(gateway: ApiClient, operation: Operation) -> None:
    reply = await gateway.send(
        operation.method, operation.path, data=b"{", headers={"authorization": "Bearer sk-nobody"}
    )
    refused(operation, reply)


@every
async def test_authentication_5_expired_and_revoked_keys_are_401(gateway: ApiClient, operation: Operation) -> None:
    keys = ApiKeys(gateway.server.service.store)
    past = datetime.now(UTC) - timedelta(seconds=1)
    earlier = ApiKeys(gateway.server.service.store, now=lambda: past - timedelta(hours=1))
    _, expired = await earlier.create(f"expired {operation.id}", expire_time=past)
    key, revoked = await keys.create(f"revoked {operation.id}")
    await revoke(gateway.server.service, key.key_id, revoked)
    for secret in (expired, revoked):
        refused(operation, await operation.call(gateway, {"authorization": f"Bearer {secret}"}))


@generating
async def test_authentication_5_a_keys_scope_is_its_models(gateway: ApiClient, operation: Operation) -> None:
    keys = ApiKeys(gateway.server.service.store)
    _, scoped = await keys.create(f"scoped {operation.id}", model_patterns=["famX-*"])
    reply = await operation.call(gateway, {"authorization": f"Bearer {scoped}"})
    assert reply.status in {403, 404}
    assert reply.body["error"]["message"]


async def test_authentication_3_the_key_in_the_query_goes_with_others(gateway: ApiClient) -> None:
    path = "/v1beta/models/famG-2.5-pro:streamGenerateContent"
    for query in (f"alt=sse&key={KEY}", f"key={KEY}&alt=sse&prettyPrint=false"):
        assert frames_of(await gateway.post(f"{path}?{query}", CONTENTS, {}))
