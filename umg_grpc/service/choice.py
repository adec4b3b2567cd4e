"""Which channel is asked next: one that can be told all of a request comes before one that cannot."""

import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

import structlog

from umg_grpc.errors import UmgError
from umg_grpc.inprocess import Context
from umg_grpc.routing import Target
from umg_grpc.service.call import Call
from umg_grpc.v1 import pb
from umg_grpc.wire.report import Report

logger = structlog.get_logger()

# Why one channel cannot be told what another can.
UNSAYABLE = frozenset(
    {pb.ERROR_REASON_UNTRANSLATABLE, pb.ERROR_REASON_UNSUPPORTED_FIELD, pb.ERROR_REASON_OBJECT_NOT_FOUND}
)

# Nothing was generated.
NOT_SERVED = frozenset(
    {pb.ERROR_REASON_UPSTREAM_UNREACHABLE, pb.ERROR_REASON_UPSTREAM_RATE_LIMITED, pb.ERROR_REASON_UNAVAILABLE}
)


class Prepared(Protocol):
    """A request as it would go to a channel."""

    @property
    def report(self) -> Report: ...


class Attemptable(Protocol):
    """A channel to try, with the request as it would go there."""

    @property
    def target(self) -> Target: ...
    @property
    def call(self) -> Prepared: ...


Tried = TypeVar("Tried", bound=Attemptable)


class Choice(ABC, Generic[Tried]):
    """Hands out the channels in the order of their targets; those that cannot be told all of the request after all that
    can, the one that is told most first.
    """

    def __init__(
        self, call: Call, model: str, targets: Iterable[Target], wire_path: Callable[[str], str] | None
    ) -> None:
        """`model`: the public id, for the log. `wire_path`: a canonical path in the words of the caller's format, where
        the request came in one.
        """
        self._call = call
        self._model = model
        self._wire_path = wire_path
        self._targets = deque(targets)
        self._only = len(self._targets) == 1
        self._lossy: list[Tried] = []
        self._refusal: UmgError | None = None

    @abstractmethod
    async def _attempt(self, target: Target) -> Tried:
        """The request as it goes to the channel. Raises UmgError, also where the caller wants all of it said."""

    async def next(self) -> Tried | None:
        """The next channel to try, None when all were. Raises UmgError for a request that no channel can be told."""
        while self._targets:
            target = self._targets.popleft()
            try:
                attempt = await self._attempt(target)
            except UmgError as error:
                if error.reason not in UNSAYABLE:
                    raise
                self._refusal = self._refusal or error
                continue
            if self._only or not attempt.call.report.lost:
                return self._handed_out(attempt)
            self._lossy.append(attempt)
        if self._lossy:
            best = min(self._lossy, key=lambda attempt: attempt.call.report.lost)
            self._lossy.remove(best)
            return self._handed_out(best)
        if self._refusal is not None and not self._call.channel:
            raise self._refusal
        return None

    def _tell(self, report: Report) -> None:
        """Puts into the caller's words what a channel is not told; to be called once for each that is prepared. Raises
        UmgError(UNTRANSLATABLE) where the caller wants all of it said.
        """
        if report.dropped and self._wire_path is not None:
            report.rename(self._wire_path)
        if self._call.strict:
            report.refuse()

    def _handed_out(self, attempt: Tried) -> Tried:
        call = self._call
        call.model, call.channel = self._model, attempt.target.channel.name
        if dropped := attempt.call.report.header():
            call.headers["x-umg-dropped"] = dropped
        else:
            call.headers.pop("x-umg-dropped", None)
        return attempt


def nearest_first(targets: list[Target], protocol: str) -> list[Target]:
    """The targets; of one priority, those first that speak the protocol: they need no translation."""
    if len(targets) < 2 or not protocol:
        return targets
    return sorted(targets, key=lambda target: (target.channel.priority, protocol not in target.channel.protocols))


def is_safe_to_move_on(error: UmgError) -> bool:
    """Whether another channel may be asked without making anything twice."""
    not_reached = error.reason == pb.ERROR_REASON_UPSTREAM_TIMEOUT and error.metadata.get("deadline") == "connect"
    return not_reached or error.reason in NOT_SERVED


def under_public_name(error: UmgError, target: Target, model: str) -> UmgError:
    """A provider's error with the model as the caller named it: what the operator calls it upstream is his own."""
    if target.model in (model, "") or target.model not in error.message:
        return error
    named = re.compile(rf"(?<![\w.-]){re.escape(target.model)}(?![\w-]|\.\w)")
    renamed = UmgError(error.reason, named.sub(lambda _: model, error.message), **error.metadata)
    renamed.cause = error.cause
    return renamed


def moving_on(call: Call, error: UmgError) -> UmgError:
    """The error, which the log has for each channel that was tried in vain."""
    logger.warning(
        "channel failed",
        request_id=call.request_id,
        channel=call.channel,
        outcome=error.name,
        cause=error.cause or None,
    )
    return error


def seconds_left(context: Context) -> float:
    """Until the caller's deadline; infinite without one (a socket's context says None then, whatever its stubs say)."""
    left: object = context.time_remaining()
    return left if isinstance(left, float) else float("inf")


def no_channel(model: str) -> UmgError:
    """For a model of which no channel was even tried."""
    message = f"no channel of the model {model} can serve now; try again"
    return UmgError(pb.ERROR_REASON_UNAVAILABLE, message)
