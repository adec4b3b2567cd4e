"""Which channel is asked next: one that can be told all of a request comes before one that cannot."""

import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

from umg_grpc.errors import UmgError
from umg_grpc.routing import Target
from umg_grpc.service.call import Call
from umg_grpc.v1 import pb
from umg_grpc.wire.report import Report

# Why one channel cannot be told what another can.
UNSAYABLE = frozenset(
    {pb.ERROR_REASON_UNTRANSLATABLE, pb.ERROR_REASON_UNSUPPORTED_FIELD, pb.ERROR_REASON_OBJECT_NOT_FOUND}
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
    """Hands out the channels in the order of their targets; those that have no room now after those that have, and
    those that cannot be told all of the request last of all, the one that is told most first.
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
        self._full: deque[Tried] = deque()
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
            if self._only:
                return attempt
            if attempt.call.report.lost:
                self._lossy.append(attempt)
            elif self._is_free(target):
                return attempt
            else:
                self._full.append(attempt)
        if self._full:
            return self._full.popleft()
        if self._lossy:
            best = min(self._lossy, key=lambda attempt: attempt.call.report.lost)
            self._lossy.remove(best)
            return best
        if self._refusal is not None and not self._call.channel:
            raise self._refusal
        return None

    def _is_free(self, target: Target) -> bool:
        """Whether its channel has room for a call now."""
        return True

    def _tell(self, report: Report) -> None:
        """Puts into the caller's words what a channel is not told; to be called once for each that is prepared. Raises
        UmgError(UNTRANSLATABLE) where the caller wants all of it said.
        """
        if report.dropped and self._wire_path is not None:
            report.rename(self._wire_path)
        if self._call.strict:
            report.refuse()


def under_public_name(error: UmgError, target: Target, model: str) -> UmgError:
    """A provider's error with the model as the caller named it: what the operator calls it upstream is his own."""
    if target.model in (model, "") or target.model not in error.message:
        return error
    named = re.compile(rf"(?<![\w.-]){re.escape(target.model)}(?![\w-]|\.\w)")
    return error.saying(named.sub(lambda _: model, error.message))
