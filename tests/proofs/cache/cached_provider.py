"""Model server with a prompt cache: a strict fake provider whose answers state the use of the cache, with a bill."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace

from aiohttp import web

from tests.pairs.table import strict_fake
from tests.proofs.cache import controls
from tests.proofs.cache.prompt_caches import CacheUse, SteppedClock, VendorCaches
from tests.proofs.cache.prompts import TOKEN_BYTES, Prompt, prompt_of
from tests.proofs.cache.stored_contents import StoredContents
from tests.proofs.cache.vendor_rules import MODEL_OF, RULES_OF, Matching, ModelPrice
from tests.support.providers.native import Native
from tests.support.providers.scenarios import Answer, Failure, ScenarioRequest, Usage
from tests.support.providers.server import KEY, Json, ReceivedRequest, RefusedError
from tests.support.providers.strict_text_server import Provider, TextFormat, text_provider

CACHES = re.compile(r"/(?:v1|v1beta)/(cachedContents(?:/[^/]+)?)")
NATIVE_MODEL = re.compile(r"/(?:v1|v1beta)/models/(.+):\w+")
NO_STORAGE = "x-no-storage"
"""Header of an account that may store nothing."""
KEY_HEADERS = ("authorization", "x-api-key", "x-goog-api-key")


@dataclass(frozen=True)
class Bill:
    account: str
    price: ModelPrice
    use: CacheUse
    output: int
    prompt: Prompt = field(repr=False)

    @property
    def cost(self) -> int:
        """Millionths of a micro-dollar."""
        use = self.use
        return self.price.cost(use.plain, use.read, use.written, use.written_long, self.output)


@dataclass
class CachedFormat:
    """Format of a strict fake provider with a prompt cache for each account. `accounts`: by the key of the provider."""

    inner: TextFormat
    model: ModelPrice
    clock: SteppedClock
    accounts: Mapping[str, str]
    bills: list[Bill] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name, self.base_path, self.heartbeat = self.inner.name, self.inner.base_path, self.inner.heartbeat
        self.caches = VendorCaches(RULES_OF[self.model.vendor], self.clock)
        self.stored = StoredContents(self.clock)

    @property
    def storage_cost(self) -> int:
        """Cost of all explicit caches, in millionths of a micro-dollar."""
        return sum(self.model.storage_cost(each.tokens, each.seconds) for each in self.stored.created)

    def admit(self, received: ReceivedRequest) -> None:
        self.inner.admit(self._as_one_account(received))

    def content_type(self, request: web.Request) -> str:
        return self.inner.content_type(request)

    def generates(self, received: ReceivedRequest) -> bool:
        return self.inner.generates(received)

    def read(self, received: ReceivedRequest) -> ScenarioRequest:
        body, stored = self._body(received)
        whole = replace(received, body=json.dumps(body).encode()) if stored else received
        request = self.inner.read(self._as_openai(whole))
        controls.judge(self.name, self.caches.rules, body, prompt_of(self.name, body))
        return request

    def whole(self, request: ScenarioRequest, answer: Answer, received: ReceivedRequest) -> Json:
        return self.inner.whole(request, self._charged(answer, received), received)

    def frames(self, request: ScenarioRequest, answer: Answer, received: ReceivedRequest) -> Iterator[bytes]:
        return self.inner.frames(request, self._charged(answer, received), received)

    def other(self, received: ReceivedRequest) -> Json | None:
        found = CACHES.fullmatch(received.path)
        if self.name != "native" or found is None:
            return self.inner.other(received)
        account = self._account(received)
        match received.method:
            case "POST" if NO_STORAGE in received.headers:
                self.stored.refused += 1
                raise RefusedError("Permission denied.", status=403)
            case "POST":
                return self.stored.create(account, received.json, self.model.minimum)
            case "GET":
                return self.stored.described(account, found[1])
            case "DELETE":
                return self.stored.delete(account, found[1])
            case _:
                return None

    def error(self, status: int, message: str, at: str | None, code: str | None) -> Json:
        return self.inner.error(status, message, at, code)

    def error_frame(self, message: str, sent: list[bytes], *, bare: bool) -> bytes:
        return self.inner.error_frame(message, sent, bare=bare)

    def _charged(self, answer: Answer, received: ReceivedRequest) -> Answer:
        """Return the response with the usage of the call, which is billed."""
        account, (body, stored) = self._account(received), self._body(received)
        prompt = prompt_of(self.name, body, self.caches.rules.settings)
        request = controls.selected(self.name, self.caches.rules, body, account, self.model.model)
        self.clock.now += self.clock.step
        use = self.caches.use(request, prompt, self.model.minimum)
        use = replace(use, read=max(use.read, stored))
        thoughts = len(answer.thought) // TOKEN_BYTES
        calls = sum(len(call.free or call.text) for call in answer.calls)
        output = 1 + (len(answer.text) + calls) // TOKEN_BYTES + thoughts
        self.bills.append(Bill(account, self.model, use, output, prompt))
        usage = Usage(
            use.prompt,
            use.read,
            output,
            thoughts,
            written=use.written,
            written_long=use.written_long,
            has_misses=self.model.vendor == "deepseek",
        )
        return replace(answer, usage=usage)

    def _body(self, received: ReceivedRequest) -> tuple[Json, int]:
        if self.name != "native":
            return received.json, 0
        return self.stored.whole_body(self._account(received), _model_of(self.name, received), received.json)

    def _as_openai(self, received: ReceivedRequest) -> ReceivedRequest:
        """Return a request to a relay of marks without them, as the strict fake of chat takes it."""
        if self.name != "chat" or self.caches.rules.matching is not Matching.MARKS:
            return received
        body = received.json
        for message in body["messages"]:
            for part in message["content"] if isinstance(message["content"], list) else ():
                if part["type"] == "text":
                    part.pop("cache_control", None)
        return replace(received, body=json.dumps(body).encode())

    def _account(self, received: ReceivedRequest) -> str:
        for secret in secrets_of(received):
            if secret in self.accounts:
                return self.accounts[secret]
        raise RefusedError("Incorrect API key provided.", status=401)

    def _as_one_account(self, received: ReceivedRequest) -> ReceivedRequest:
        """Return the request with the key that the strict fake accepts in place of the account's."""
        self._account(received)
        headers = dict(received.headers)
        for name in KEY_HEADERS:
            for secret in self.accounts:
                if secret in headers.get(name, ""):
                    headers[name] = headers[name].replace(secret, KEY)
        return replace(received, headers=headers)


def secrets_of(received: ReceivedRequest) -> Iterator[str]:
    """Yield the keys in the headers and in the query of a request, "" for each place that has none."""
    for name in KEY_HEADERS:
        yield received.headers.get(name, "").removeprefix("Bearer ")
    yield received.query.get("key", "")


def _model_of(wire_format: str, received: ReceivedRequest) -> str:
    if wire_format == "native" and (found := NATIVE_MODEL.fullmatch(received.path)):
        return found[1]
    return str(received.json["model"])


def cached_provider(
    wire_format: str,
    model: str,
    answers: Callable[[ScenarioRequest], Answer | Failure],
    accounts: Mapping[str, str],
    clock: SteppedClock | None = None,
) -> tuple[CachedFormat, AbstractAsyncContextManager[Provider]]:
    """Return the format with its bills, and the provider to run. `answers`: the model's answer to each request."""
    # Programs send two turns of one role in a row, which the newest models of the native format take.
    inner = Native(alternates=False) if wire_format == "native" else strict_fake(wire_format)()
    cached = CachedFormat(inner, MODEL_OF[model], clock or SteppedClock(), accounts)
    return cached, text_provider(cached, model=answers)
