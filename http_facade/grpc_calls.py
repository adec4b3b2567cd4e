"""What every gRPC call of the face has: its metadata, what of the answer's becomes headers, and its end."""

import secrets
import time
from collections.abc import Iterable, Mapping
from math import inf
from types import TracebackType
from typing import Generic, Protocol, TypeVar, runtime_checkable

import grpc
from aiohttp import web
from multidict import istr

from http_facade import auth
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.headers import CACHE, TIMEOUT, cache_seconds, is_request_id, is_strict, timeout_seconds

REQUEST_ID_HEADER = istr("x-request-id")
MESSAGES_REQUEST_ID = istr("request-id")  # where the clients of that format look for it
STRICT = istr("x-umg-strict")
TIMEOUT_HEADER, CACHE_HEADER = istr(TIMEOUT), istr(CACHE)
SHOWN = ("x-umg-", "x-ratelimit-", "retry-after")
"""Initial metadata whose names begin so become response headers."""

SHORTEST = 0.001
"""Seconds: the least that the service can be told."""

EXCHANGE: web.RequestKey["Exchange"] = web.RequestKey("exchange")

Call = TypeVar("Call", bound=grpc.aio.Call)


@runtime_checkable
class Closable(Protocol):
    """A call without a socket: closing it waits until what it holds upstream is let go."""

    async def aclose(self) -> None:
        """Ends the call where it stands."""


class Exchange:
    """What is known of one request beside what it says itself."""

    __slots__ = ("admitted", "began_at", "called", "failure", "refused", "request_id", "spent")

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id  # in every answer, every call and the log
        self.began_at = time.monotonic()
        self.admitted = False  # whether the gate let it in, which it leaves when its answer is written
        self.refused = False  # whether it was turned away unread, of which the log has no line
        self.called = False  # whether the service was called for it, and so has it in its log
        self.failure: str | None = None  # name of the reason, for the access log
        self.spent = False  # its body was not read to its end, so its connection is not used again


def exchange(request: web.BaseRequest) -> Exchange:
    """The request's own, made when it is first asked for."""
    try:
        return request[EXCHANGE]
    except KeyError:
        known = request[EXCHANGE] = Exchange(request_id_in(request.headers))
        return known


def request_id_in(headers: Mapping[str, str]) -> str:
    """The caller's own where it is 1 to 128 visible ASCII characters, else one of ours."""
    given = headers.get(REQUEST_ID_HEADER)
    return given if given is not None and is_request_id(given) else new_request_id()


def new_request_id() -> str:
    """One of ours."""
    return f"req_{secrets.token_hex(16)}"


class opened(Generic[Call]):  # noqa: N801  # reads as `contextlib.aclosing` does
    """Context in which a stream is read: a caller who left must not keep the provider busy."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def __aenter__(self) -> Call:
        return self._call

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        call: object = self._call  # for the type checker, to which no call of gRPC can be closed
        if isinstance(call, Closable):
            await call.aclose()
        else:
            self._call.cancel()


def metadata(request: web.Request, face: str) -> list[tuple[str, str]]:
    """What goes with each call. Raises UmgError for a header that cannot be taken."""
    known = exchange(request)
    pairs = [("x-request-id", known.request_id), ("x-umg-face", face)]
    authorization = auth.credentials(request.headers, request.query, face)
    if authorization is not None:
        pairs.append(("authorization", authorization))
    if is_strict(request.headers.get(STRICT)):
        pairs.append(("x-umg-strict", "true"))
    if (cache := request.headers.get(CACHE_HEADER)) is not None:
        cache_seconds(cache)
        pairs.append((CACHE, cache.strip()))
    if TIMEOUT_HEADER in request.headers:  # what is left of it: the caller counts from the moment in which it called
        pairs.append((TIMEOUT, f"{max(SHORTEST, seconds_left(request)):.3f}"))
    known.called = True
    return pairs


async def check_key(models: "rpc.ModelServiceAsyncStub", request: web.Request, face: str) -> None:
    """Raises the service's error for a key that is not good. One that is good says nothing of how the request ends."""
    await models.ListModels(pb.ListModelsRequest(page_size=1), metadata=metadata(request, face))
    exchange(request).called = False


def seconds_left(request: web.Request) -> float:
    """Until the caller waits no longer; infinite where it does not say. Raises UmgError(INVALID_FIELD)."""
    if (given := request.headers.get(TIMEOUT_HEADER)) is None:
        return inf
    return timeout_seconds(given) - (time.monotonic() - exchange(request).began_at)


def model_of(request: web.Request) -> str:
    """The model that the path names, as SDKs write it: one leading `models/` is theirs."""
    return request.match_info["model"].removeprefix("models/")


def shown(initial: Iterable[tuple[str, str | bytes]] | None) -> dict[str, str]:
    """The response headers that the service asked for."""
    return {key: value for key, value in initial or () if isinstance(value, str) and key.startswith(SHOWN)}
